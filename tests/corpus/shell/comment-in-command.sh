#!/bin/bash
python -m sglang.launch_server \
  --model-path meta-llama/Llama-3.1-8B-Instruct \
  --tp 2 \
  # --enable-torch-compile \
  --speculative-algorithm EAGLE3 \
  --speculative-eagle-topk 4
echo "started"
