#!/usr/bin/env bash
# One server on each GPU.
set -euo pipefail
GPUS=4
BASE=30000
for ((i = 0; i < GPUS; i++)); do
  CUDA_VISIBLE_DEVICES=$i numactl --cpunodebind=$((i / 2)) nohup python3 -m sglang.launch_server \
    --model-path /models/small --port $((BASE + i)) --base-gpu-id 0 > "server_$i.log" 2>&1 &
  PIDS+=($!)
done

# and two more, for the embedding model
n=0
while [ $n -lt 2 ]; do
  python3 -m sglang.launch_server --model-path /models/embed --is-embedding --port $((31000 + n)) &
  n=$((n + 1))
done

for rank in $(seq 0 1); do
  ssh "node$rank" "python3 -m sglang.launch_server --model-path /models/big --tp 16 --nnodes 2 --node-rank $rank --dist-init-addr node0:5000" &
done

for ((i = 0; i < NUM_EXTRA; i++)); do
  python3 -m sglang.launch_server --model-path /models/extra --port $((32000 + i)) --log-level warning &
done
trap 'kill "${PIDS[@]}"' EXIT
wait
