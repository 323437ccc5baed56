#!/usr/bin/env bash
set -euo pipefail
die() { echo "error: $*" >&2; exit 1; }
[[ $# -ge 1 ]] || die "need a role"
ROLE=$1
[[ $ROLE == prefill || $ROLE == decode ]] || die "bad role $ROLE"
if [ -z "${MODEL:-}" ]; then
  die "set MODEL"
fi
if ! command -v nvidia-smi > /dev/null; then
  BACKEND=triton
else
  BACKEND=fa3
fi
exec python3 -m sglang.launch_server --model-path "$MODEL" --disaggregation-mode "$ROLE" --attention-backend $BACKEND
