#!/bin/bash
for steps in 1 3 5; do
  for topk in 1 4; do
    python3 -m sglang.bench_one_batch --model-path meta-llama/Llama-2-7b-chat-hf \
      --speculative-algorithm EAGLE --speculative-num-steps $steps --speculative-eagle-topk $topk \
      --speculative-num-draft-tokens $((steps * topk + 1)) --batch-size 1
  done
done
