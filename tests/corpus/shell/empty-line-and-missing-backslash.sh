#!/bin/bash
python -m sglang.launch_server \
  --model-path a/b \

  --tp 2 \
  --page-size 16

sglang serve c/d \
  --tp 2
  --page-size 16 \
  --trust-remote-code
