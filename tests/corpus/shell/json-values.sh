#!/bin/bash
N=8
OVERRIDE=$(cat <<EOF
{"max_position_embeddings": 131072, "experts": $N}
EOF
)
read -r -d '' LOADER <<'EOF'
{
  "enable_multithread_load": true,
  "num_threads": 8
}
EOF
sglang serve /models/m --json-model-override-args "$OVERRIDE" --model-loader-extra-config "$LOADER" &
sglang serve /models/m --json-model-override-args "{\"rope_scaling\": {\"factor\": 4.0}}" --port 30001 &
sglang serve /models/m --kv-events-config '{"publisher": "zmq", "topic": "kv-events"}' --port 30002 &
sglang serve /models/m --model-loader-extra-config "$(jq -nc '{num_threads: 4}')" --port 30003 &
sglang serve /models/m --preferred-sampling-params $'{"stop": "\\n"}' --port 30004
