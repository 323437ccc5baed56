#!/bin/bash
# host -> ssh here-document -> docker run -> bash -c "…\"…\""
TP=8
ssh admin@gpu-host <<EOF
set -e
docker rm -f serve || true
docker run -d --name serve --gpus all --ipc=host -e SGLANG_ENABLE_SPEC_V2=1 \\
  lmsysorg/sglang:v0.5.14-cu130 \\
  bash -c "python3 -m sglang.launch_server --model-path /models/next --tp $TP \\
    --served-model-name \"next 80b\" \\
    --json-model-override-args '{\"num_nextn_predict_layers\": 1}' \\
    --port 30000"
EOF

kubectl exec -n serving deploy/server -c main -- bash -lc "
  cd /workspace
  export SGLANG_LOG_MS=1
  exec python3 -m sglang.launch_server \
    --model-path /models/next \
    --chat-template \"/templates/next v2.jinja\" \
    --tp $TP
"

srun --nodes=2 --ntasks-per-node=1 bash -c '
  python3 -m sglang.launch_server \
    --model-path /models/next --tp 16 \
    --nnodes $SLURM_NNODES --node-rank $SLURM_NODEID \
    --dist-init-addr '"$HEAD_NODE"':5000
'
