#!/bin/bash
# The same arguments, quoted once more for the shell on the other side.
ARGS=(
  --model-path /models/vl-72b
  --tp 8
  --json-model-override-args '{"rope_scaling": {"type": "yarn", "factor": 4.0}}'
  --served-model-name "the vl model"
)
ssh gpu-host "cd /srv && nohup python3 -m sglang.launch_server ${ARGS[*]@Q} > server.log 2>&1 &"

CMD=$(printf '%q ' python3 -m sglang.launch_server "${ARGS[@]}" --port 30001)
echo "+ $CMD"
eval "$CMD"

printf -v PORT '%d' 30002
docker exec -d serve bash -c "python3 -m sglang.launch_server $(printf '%q ' "${ARGS[@]}")--port $PORT"

LORAS=$(printf ' --lora-paths %s' /loras/a)
python3 -m sglang.launch_server --model-path /models/base $LORAS
