#!/bin/bash
# Programs with SGLang in their names and flags that look alike; only the first two commands start its server.
python3 -m dynamo.sglang --model-path /models/m --tp 4 --dyn-tool-call-parser hermes &
python3 -m sglang_router.launch_server --model-path /models/m --dp-size 4 --router-policy cache_aware &
python3 -m dynamo.frontend --http-port 8000 &
python3 -m sglang_router.launch_router --worker-urls http://a:30000 --policy cache_aware &
python3 -m sglang.launch_router --policy random &
smg launch --worker-urls http://a:30000 --policy round_robin &
python3 -m sgl_jax.launch_server --model-path /models/m --tp-size 4 --attention-backend fa &
sglang generate --model-path /models/image --num-gpus 2 --prompt "a cat"
vllm serve /models/m --attention-backend FLASHINFER --tensor-parallel-size 4 &
torchrun --nproc_per_node 8 pretrain.py --attention-backend flash --tp-size 4 --use-sglang
python3 -m sglang.bench_serving --backend sglang --model /models/m --host 127.0.0.1 --port 30000 --num-prompts 512
python3 bench_client.py --sglang-url http://127.0.0.1:30000 --sglang-model-path /models/m
python3 -m sglang.test.few_shot_gsm8k --num-questions 200 --port 30000
python3 -m sglang.check_env
