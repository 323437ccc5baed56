#!/bin/sh
ARGS="--model-path $MODEL"
ARGS="$ARGS --tp 4"
ARGS="${ARGS} --page-size 64"
if [ "$SPEC" = "true" ]; then
  ARGS="$ARGS --speculative-algorithm EAGLE3 --speculative-eagle-topk 8"
fi
nohup python3 -m sglang.launch_server $ARGS > sglang.log 2>&1 &
