#!/bin/bash
MEGATRON_ARGS=(--attention-backend flash --tp-comm-overlap)
torchrun --nproc_per_node 8 pretrain_gpt.py "${MEGATRON_ARGS[@]}"
vllm serve meta-llama/Llama-3.1-8B --attention-backend FLASH_ATTN
python -m sgl_jax.launch_server --model-path x --tp-size 4
python -m sglang.bench_serving --backend sglang --host 127.0.0.1 --port 30000
python3 -m dynamo.frontend --http-port 8000 &
python3 -m dynamo.sglang --model-path Qwen/Qwen3-8B --tp 2 --dyn-tool-call-parser qwen25
