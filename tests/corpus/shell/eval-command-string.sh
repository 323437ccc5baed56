#!/bin/bash
LAUNCH="python3 -m sglang.launch_server --model-path ${MODEL_DIR:-/models/qwen} \
  --tp 4 --served-model-name 'my model'"
[ "$DEBUG" = 1 ] && LAUNCH+=" --log-level debug"
echo "$LAUNCH"
eval "$LAUNCH" 2>&1 | tee out.log
