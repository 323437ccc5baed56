#!/usr/bin/env bash
MODEL=deepseek-ai/DeepSeek-R1
COMMON=(--model-path "$MODEL" --trust-remote-code --disaggregation-transfer-backend mooncake)

launch() {
  local mode=$1 port=$2
  shift 2
  CUDA_VISIBLE_DEVICES=$GPUS python -m sglang.launch_server "${COMMON[@]}" \
    --disaggregation-mode "$mode" --port "$port" "$@" > "$mode.log" 2>&1 &
}

GPUS=0,1,2,3 launch prefill 30001 --tp 4
GPUS=4,5,6,7 launch decode 30002 --tp 4 --max-running-requests 128
python -m sglang_router.launch_router --pd-disaggregation --prefill http://127.0.0.1:30001 --decode http://127.0.0.1:30002
