#!/bin/bash
TP=4
python -m sglang.launch_server --model-path "meta-llama/Llama \
  --tp $TP
if [ -n "$X" ]; then
  sglang serve other --tp 2
NAME="x"
python -m sglang.launch_server --model-path b --tp
