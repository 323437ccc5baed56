#!/usr/bin/env bash
declare -A MODELS=(
  [qwen]="Qwen/Qwen3-8B"
  [llama]="meta-llama/Llama-3.1-8B-Instruct"
)
declare -A FLAGS
FLAGS[qwen]="--tp 1 --reasoning-parser qwen3"
FLAGS[llama]="--tp 2"
for name in qwen llama; do
  python -m sglang.launch_server --model-path "${MODELS[$name]}" ${FLAGS[$name]} --port 30000 &
done
wait
