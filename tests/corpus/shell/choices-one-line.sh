#!/bin/bash
# Alternatives written on one line, in every fashion.
ARGS="--model-path ${MODEL:?which model}"
[ "$FP8" = 1 ] && ARGS="$ARGS --quantization fp8" || ARGS="$ARGS --dtype bfloat16"
[[ $CONTEXT -gt 32768 ]] && ARGS+=" --chunked-prefill-size 4096"
if command -v uv > /dev/null; then PY="uv run python"; else PY=python3; fi
TP=$(( GPUS > 4 ? 8 : 4 ))
$PY -m sglang.launch_server $ARGS --tp $TP ${DRAFT:+--speculative-algorithm EAGLE3 --speculative-draft-model-path "$DRAFT"} \
  ${METRICS:+--enable-metrics} --attention-backend "${ATTN:-fa3}"
