#!/bin/bash
TP=8
for host in node1 node2; do
  ssh -o StrictHostKeyChecking=no "$host" bash -s <<EOF
cd /srv/models
export SGLANG_LOG_LEVEL=info
nohup python3 -m sglang.launch_server --model-path ./r1 --tp $TP --dist-init-addr \$HEAD:5000 > /tmp/$host.log 2>&1 &
EOF
done
