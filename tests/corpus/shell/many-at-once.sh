#!/bin/bash
# GNU parallel, xargs, MPI and pdsh start several.
parallel -j 2 'CUDA_VISIBLE_DEVICES={} python3 -m sglang.launch_server --model-path /models/m --port 3000{}' ::: 0 1
cat models.txt | xargs -I{} -P 2 python3 -m sglang.launch_server --model-path {} --tp 2 --log-requests
echo "--tp 4" | xargs python3 -m sglang.launch_server --model-path /models/m
mpirun --allow-run-as-root -np 2 -H node0,node1 -x NCCL_DEBUG=INFO -x SGLANG_LOG_MS=1 \
  bash -c 'python3 -m sglang.launch_server --model-path /models/m --tp 16 --nnodes 2 --node-rank $OMPI_COMM_WORLD_RANK --dist-init-addr node0:5000'
pdsh -w node[2-3] "cd /srv && python3 -m sglang.launch_server --model-path /models/m --tp 8 --port 30002"
gcloud compute ssh gpu-vm --zone us-a --command "python3 -m sglang.launch_server --model-path /models/m --tp 8 --port 30003"
