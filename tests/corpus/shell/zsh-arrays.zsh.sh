#!/usr/bin/env zsh
# In zsh an array needs no braces, and a string is not split.
args=(
  --model-path /models/m
  --tp 4
)
args+=(--port 30000)
python3 -m sglang.launch_server $args

flags="--page-size 64"
python3 -m sglang.launch_server --model-path /models/n ${=flags}
