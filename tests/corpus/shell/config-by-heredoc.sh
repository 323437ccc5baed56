#!/bin/bash
cat > /tmp/server.yaml <<'EOF'
# written here, read below
model-path: meta-llama/Llama-3.1-8B-Instruct
tp: 2
speculative-algorithm: EAGLE3
speculative-eagle-topk: 4
EOF
python -m sglang.launch_server --config /tmp/server.yaml --port 30000
