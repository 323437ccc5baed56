#!/bin/bash
# Größe – 模型 😀
NAME='modèle 😀'
python -m sglang.launch_server --model-path "/data/模型/$NAME" --served-model-name "$NAME" --tp 2 \
  --chat-template ./模板.jinja
