#!/bin/bash
# Reinforcement learning: the trainer starts the rollout servers itself and hands them what begins with --sglang-.
set -ex
source "${SCRIPT_DIR}/models/moe-30b.sh"

ROLLOUT_ARGS=(
   --prompt-data /data/math.jsonl
   --rollout-batch-size 32
   --rollout-temperature 0.8
)

SGLANG_ARGS=(
   --rollout-num-gpus-per-engine 8
   --sglang-mem-fraction-static 0.7
   --sglang-enable-dp-attention
   --sglang-dp-size 8
   --sglang-cuda-graph-bs 1 2 4 8 $(seq 16 8 64)
   # drafts
   --sglang-speculative-algorithm EAGLE
   --sglang-speculative-num-steps 3
   --sglang-speculative-eagle-topk 1
   --sglang-speculative-num-draft-tokens 4
   --sglang-server-concurrency 512
   --sglang-router-ip 127.0.0.1
)

MISC_ARGS=(
   # Megatron's, not SGLang's
   --attention-backend flash
   --attention-dropout 0.0
)

ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json="${RUNTIME_ENV_JSON}" \
   -- python3 train.py \
   --actor-num-nodes 1 \
   --actor-num-gpus-per-node 8 \
   ${MODEL_ARGS[@]} \
   ${ROLLOUT_ARGS[@]} \
   ${SGLANG_ARGS[@]} \
   ${MISC_ARGS[@]}
