#!/bin/bash
# Writes the start script for each role, then runs both.
MODEL=/models/moe-235b
TP=8
WORK=$(mktemp -d)

cat > "$WORK/prefill.sh" <<EOF
#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1,2,3
exec python3 -m sglang.launch_server \\
  --model-path $MODEL \\
  --tp $((TP / 2)) \\
  --disaggregation-mode prefill \\
  --port 30000
EOF

cat > "$WORK/decode.sh" <<'EOF'
#!/bin/bash
# flags that the caller gives come last
export CUDA_VISIBLE_DEVICES=4,5,6,7
python3 -m sglang.launch_server --model-path /models/moe-235b --tp 4 \
  --disaggregation-mode decode --port 30001 "$@"
EOF

chmod +x "$WORK"/*.sh
nohup "$WORK/prefill.sh" > prefill.log 2>&1 &
bash "$WORK/decode.sh" --page-size 64 --cuda-graph-max-bs 256 > decode.log 2>&1 &

echo '#!/bin/bash' > warmup.sh
echo "python3 -m sglang.bench_one_batch --model-path $MODEL --tp $TP" >> warmup.sh
bash warmup.sh
wait
