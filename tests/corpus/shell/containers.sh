#!/bin/bash
IMAGE=lmsysorg/sglang:v0.5.15
OPTS=(--rm --gpus all --ipc=host --network host -v /models:/models -e SGLANG_LOG_MS=1)
docker run "${OPTS[@]}" "$IMAGE" python3 -m sglang.launch_server --model-path /models/a --tp 4
docker run --rm --gpus '"device=0,1"' --entrypoint python3 $IMAGE -m sglang.launch_server --model-path /models/b --tp 2
docker run $DOCKER_FLAGS $IMAGE sglang serve /models/c
podman run --device nvidia.com/gpu=all docker.io/lmsysorg/sglang:v0.5.15-cu130 bash -lc 'python3 -m sglang.launch_server --model-path /models/d'
docker compose -f serve.yml run --rm -e SGLANG_PORT=1 server python3 -m sglang.launch_server --model-path /models/e --tp 8
docker-compose exec -T server bash -c "python3 -m sglang.launch_server --model-path /models/f"
apptainer exec --nv --env SGLANG_A=1,SGLANG_B=2 --bind /models:/models sglang_v0.5.15.sif python3 -m sglang.launch_server --model-path /models/g
enroot start --rw --env SGLANG_A=1 sglang-v0.5.15 python3 -m sglang.launch_server --model-path /models/h
sudo -u serve -E env SGLANG_C=1 python3 -m sglang.launch_server --model-path /models/i
su - serve -c "cd /srv && exec python3 -m sglang.launch_server --model-path /models/j --tp 8"
kubectl run once --image=$IMAGE --restart=Never -- python3 -m sglang.launch_server --model-path /models/k
