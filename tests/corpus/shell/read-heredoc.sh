#!/bin/bash
read -r -d '' LAUNCH <<EOF
python3 -m sglang.launch_server \
  --model-path Qwen/Qwen3-Next-80B-A3B-Instruct \
  --tp 4 --mamba-ssm-dtype float32
EOF
bash -c "$LAUNCH"
