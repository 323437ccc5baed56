#!/usr/bin/env bash
# Functions that print flags, set them, take them by name.
spec_flags() {
  if [[ "$SPEC" == eagle3 ]]; then
    echo "--speculative-algorithm EAGLE3 --speculative-draft-model-path $DRAFT"
  fi
}

common_args() {
  local -a out=(--host 0.0.0.0 --trust-remote-code)
  [[ -n "$QUANT" ]] && out+=(--quantization "$QUANT")
  echo "${out[@]}"
}

add_role() {
  local -n target=$1
  target+=(--disaggregation-mode "$2" --disaggregation-transfer-backend mooncake)
}

PREFILL=(--model-path /models/m --tp 4)
DECODE=(--model-path /models/m --tp 4 --dp 4 --enable-dp-attention)
add_role PREFILL prefill
add_role DECODE decode

python3 -m sglang.launch_server "${PREFILL[@]}" $(common_args) &
python3 -m sglang.launch_server "${DECODE[@]}" $(spec_flags) &

retry() { local tries=$1; shift; for _ in $(seq "$tries"); do "$@" && return; sleep 5; done; }
retry 3 python3 -m sglang.launch_server --model-path /models/n --port 30009
