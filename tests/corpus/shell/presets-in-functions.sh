#!/usr/bin/env bash
# launch.sh PRESET: a function for each preset fills the same arrays.
BASE=(--host 0.0.0.0 --trust-remote-code)
SPEC=()
ENVS=(SGLANG_LOG_MS=1)

preset_dense() {
  MODEL=/models/dense-32b
  TP=2
  SPEC=(--speculative-algorithm EAGLE3 --speculative-draft-model-path /models/dense-32b-eagle3)
}

preset_moe() {
  MODEL=/models/moe-235b
  TP=8
  BASE+=(--ep-size 8 --moe-a2a-backend deepep)
  ENVS+=(SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=256)
}

preset_mla() {
  preset_moe
  MODEL=/models/mla-671b
  BASE+=(--attention-backend flashmla)
}

if ! declare -F "preset_$1" > /dev/null; then
  echo "no preset $1" >&2
  exit 1
fi
"preset_$1"
shift

CMD=(python3 -m sglang.launch_server)
CMD+=(--model-path "$MODEL" --tp "$TP")
CMD+=("${BASE[@]}" "${SPEC[@]}")
exec env "${ENVS[@]}" "${CMD[@]}" "$@"
