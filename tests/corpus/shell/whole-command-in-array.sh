#!/usr/bin/env bash
set -e
CMD=(
  python -m sglang.launch_server
  # the model and how it is cut
  --model-path "$MODEL_PATH"
  --tp "${TP_SIZE:-8}"   # one node

  --trust-remote-code
)
if [[ -n "${QUANT:-}" ]]; then
  CMD+=(--quantization "$QUANT")
fi
[[ "${ENABLE_SPEC:-0}" == "1" ]] && CMD+=(--speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1)
echo "Running: ${CMD[*]}"
exec "${CMD[@]}" "$@"
