#!/bin/bash
# python -m sglang.launch_server --model-path x --tp 8
echo "Start it with: python -m sglang.launch_server --model-path x"
if pgrep -f "sglang.launch_server" > /dev/null; then
  pkill -9 -f sglang.launch_server
fi
cat <<'EOF'
usage:
  python -m sglang.launch_server --model-path MODEL
EOF
HELP="python -m sglang.launch_server --help"
