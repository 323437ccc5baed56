#!/bin/bash
# A launch that SGLang refuses, for a first look: `spec-lsp check editors/demo.sh`, or open it in your editor.
# spec-lsp: sglang=0.5.23 gpu=b200
TOPK=4

python3 -m sglang.launch_server \
  --model-path meta-llama/Llama-3.1-8B-Instruct \
  --speculative-algorithm EAGLE3 \
  --speculative-draft-model-path lmsys/sglang-EAGLE3-LLaMA3.1-Instruct-8B \
  --speculative-num-steps 3 \
  --speculative-eagle-topk "$TOPK" \
  --speculative-num-draft-tokens 16 \
  --attention-backend trtllm_mha
