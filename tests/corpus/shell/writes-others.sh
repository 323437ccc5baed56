#!/bin/bash
# Writes what others run: a script for a node, a unit, an image; and one script that it runs itself.
MODEL=org/model-8b
OUT=${OUT:-/srv/llm}

cat > "$OUT/start.sh" <<'START'
#!/usr/bin/env bash
SPEC=()
case "$MODE" in
  mtp) SPEC=(--speculative-algorithm EAGLE --speculative-num-steps 3) ;;
  none) ;;
esac
exec python3 -m sglang.launch_server \
  --model-path "$MODEL_PATH" \
  "${SPEC[@]}" \
  --port 8000
START
chmod +x "$OUT/start.sh"

sudo tee /etc/systemd/system/llm.service > /dev/null <<UNIT
[Service]
Environment=TP=2
ExecStart=/opt/venv/bin/python -m sglang.launch_server \\
  --model-path $MODEL --tp \${TP}
UNIT

cat <<'IMAGE' > "$OUT/Dockerfile"
FROM lmsysorg/sglang:v0.5.12
CMD ["python3", "-m", "sglang.launch_server", "--model-path", "org/model-8b", "--tp", "4"]
IMAGE

cat > now.sh <<EOF
sglang serve $MODEL --tp 8
EOF
bash now.sh

cat <<USAGE
then run: sglang serve $MODEL --tp 16
USAGE
