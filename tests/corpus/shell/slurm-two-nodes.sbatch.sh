#!/bin/bash
#SBATCH --job-name=r1
#SBATCH --nodes=2
#SBATCH --gres=gpu:h100:8
#SBATCH --constraint=ib

HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --nodes=2 --container-image=lmsysorg/sglang:v0.5.12 bash -c '
  python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 16 \
    --dist-init-addr '"$HEAD"':5000 --nnodes 2 --node-rank $SLURM_PROCID
'
