#!/bin/bash
IMAGE=lmsysorg/sglang:v0.5.9-cu130
docker run --rm -d --gpus '"device=0,1"' --shm-size 32g --ipc=host \
  -v ~/.cache/huggingface:/root/.cache/huggingface \
  -e HF_TOKEN=$HF_TOKEN -e SGLANG_ENABLE_SPEC_V2=1 --env NCCL_DEBUG=WARN \
  -p 30000:30000 --name sglang \
  $IMAGE \
  python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 --host 0.0.0.0

docker run -it --gpus all "$IMAGE" bash -c "pip install -q nixl && python3 -m sglang.launch_server --model-path \"$MODEL\" --tp 8"
