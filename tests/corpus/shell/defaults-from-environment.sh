#!/bin/bash
MODEL=${MODEL:-Qwen/Qwen3-8B}
TP=${TP:-4}
TOPK="${TOPK:-4}"
: "${PAGE_SIZE:=64}"
PORT=${1:-30000}
exec python -m sglang.launch_server --model-path "$MODEL" --tp-size $TP \
  --speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk ${TOPK} --speculative-num-draft-tokens 16 \
  --page-size ${PAGE_SIZE} --port $PORT $EXTRA_ARGS
