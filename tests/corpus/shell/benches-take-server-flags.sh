#!/bin/bash
# These load the model themselves, with the server's own arguments beside theirs.
for bs in 1 8; do
  python3 -m sglang.bench_one_batch --model-path /models/m --tp 8 --batch-size $bs --input-len 1024 --output-len 8
done
python3 -m sglang.bench_offline_throughput --model-path /models/m --num-prompts 10 --attention-backend fa3
python3 -m sglang.compile_deep_gemm --model /models/m --tp 8 --trust-remote-code
python3 -m sglang.bench_one_batch_server --model None --base-url http://127.0.0.1:30000 --batch-size 16
