#!/bin/bash
# Submits one Slurm job for each tensor-parallel size.
for tp in 4 8; do
  sbatch <<EOF
#!/bin/bash
#SBATCH --job-name=serve-$tp
#SBATCH --nodes=1
#SBATCH --gres=gpu:h200:$tp
srun --container-image=lmsysorg/sglang:v0.5.12 \\
  python3 -m sglang.launch_server --model-path /models/base --tp $tp --port \$((30000 + SLURM_JOB_ID % 1000))
EOF
done

tee eval.sbatch > /dev/null <<'EOF'
#!/bin/bash
#SBATCH --gpus-per-node=8
python3 -m sglang.launch_server --model-path "$1" --tp 8 --enable-metrics
EOF
sbatch --parsable -N 2 eval.sbatch /models/eval

sbatch --nodes=1 --gpus=1 --wrap="source ~/venv/bin/activate && sglang serve /models/tiny --port 31000"
