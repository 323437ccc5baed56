#!/bin/bash
python -m sglang.launch_server \
  --model-path meta-llama/Llama-3.1-8B-Instruct \ 
  --tp 2 \
  --page-size 16
