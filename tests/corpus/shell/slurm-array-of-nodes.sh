#!/bin/bash
#SBATCH --job-name=serve
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=h100:8
#SBATCH --exclusive
module load cuda
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head=${nodes[0]}
head_ip=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address)

export SGLANG_DISAGGREGATION_WAITING_TIMEOUT=600
for i in "${!nodes[@]}"; do
  srun --overlap --nodes=1 --ntasks=1 -w "${nodes[$i]}" --export=ALL,SGLANG_HOST_IP="${nodes[$i]}" \
    python3 -m sglang.launch_server --model-path /models/r1 --tp 32 \
    --nnodes "${#nodes[@]}" --node-rank "$i" --dist-init-addr "$head_ip:20000" \
    --enable-dp-attention --dp 32 --moe-a2a-backend deepep &
done
srun --nodes=4 bash -c "python3 -m sglang.launch_server --model-path /models/v3 --tp 32 --nnodes 4 --node-rank \$SLURM_PROCID --dist-init-addr $head_ip:20001"
wait
