#!/usr/bin/env bash
# Serves a small model for the integration tests.
set -euo pipefail

export SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1

python3 -m sglang.launch_server \
  --model-path meta-llama/Llama-3.1-8B-Instruct \
  --tp 2 \
  --mem-fraction-static=0.85 \
  --speculative-algorithm EAGLE3 \
  --speculative-draft-model-path lmsys/sglang-EAGLE3-LLaMA3.1-Instruct-8B \
  --speculative-num-steps 5 \
  --speculative-eagle-topk 8 \
  --speculative-num-draft-tokens 32 \
  --json-model-override-args '{"max_position_embeddings": 16384}' \
  --host 0.0.0.0 --port 30000 > server.log 2>&1 &
SERVER=$!
trap 'kill $SERVER' EXIT
until curl -s localhost:30000/health; do sleep 1; done
python -m sglang.bench_serving --backend sglang --model meta-llama/Llama-3.1-8B-Instruct
