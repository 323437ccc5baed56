#!/bin/bash
# Flags that somebody switched off, and text that only looks like a launch.
ARGS=(
  --model-path /models/m
  # --enable-torch-compile
  --tp 8          # eight GPUs
  # --page-size 64 --attention-backend fa3
)
# python3 -m sglang.launch_server --model-path /models/old --tp 2
echo "start with: python3 -m sglang.launch_server ${ARGS[*]}"
pkill -f "python3 -m sglang.launch_server" || true
cat <<EOF
usage:
  python3 -m sglang.launch_server --model-path MODEL
EOF
if pgrep -f 'sglang.launch_server --model-path /models/m' > /dev/null; then exit 0; fi
python3 -m sglang.launch_server "${ARGS[@]}"
cat > README.txt <<'EOF'
python3 -m sglang.launch_server --model-path /models/doc
EOF
