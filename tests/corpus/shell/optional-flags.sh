#!/bin/bash
python3 -m sglang.launch_server \
  --model-path "$MODEL" \
  ${DRAFT:+--speculative-draft-model-path "$DRAFT"} \
  --scheduler-recv-interval $( [[ $CONC -gt 64 ]] && echo 30 || echo 10 ) \
  --context-length $((ISL + OSL + 20)) \
  "${EXTRA[@]+"${EXTRA[@]}"}"
