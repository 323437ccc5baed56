#!/bin/bash
source /opt/venv/bin/activate
cd /srv || exit 1
env SGLANG_USE_AITER=1 numactl --cpunodebind=0 --membind=0 /opt/venv/bin/python -m sglang.launch_server --model-path a --tp 1 &
tmux send-keys -t serve:0 "python -m sglang.launch_server --model-path b --tp 2" C-m
kubectl exec -it pod-0 -c main -- bash -lc 'python3 -m sglang.launch_server --model-path c --tp 4'
apptainer exec --nv --env SGLANG_X=1 sglang_v0.5.12.sif python3 -m sglang.launch_server --model-path d
uvx --from "sglang==0.5.19" sglang serve e --tp 1
nsys profile -o trace python3 -m sglang.launch_server --model-path f --disable-cuda-graph
timeout 3600 setsid nohup "$PYTHON" -m sglang.launch_server --model-path g </dev/null &>g.log &
ray job submit --address http://127.0.0.1:8265 -- python3 -m sglang.launch_server --model-path h
