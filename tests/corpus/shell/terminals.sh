#!/bin/zsh
# Panes of one tmux session; one screen.
SESSION=serve
tmux new-session -d -s $SESSION -n prefill
tmux send-keys -t $SESSION:prefill "cd /srv/sglang && source .venv/bin/activate" Enter
tmux send-keys -t $SESSION:prefill "CUDA_VISIBLE_DEVICES=0,1 python -m sglang.launch_server --model-path /models/m --tp 2 --disaggregation-mode prefill --port 30000" Enter
tmux new-window -t $SESSION -n decode 'CUDA_VISIBLE_DEVICES=2,3 python -m sglang.launch_server --model-path /models/m --tp 2 --disaggregation-mode decode --port 30001; exec zsh'
tmux split-window -h "watch -n 1 nvidia-smi"
tmux send-keys -t $SESSION:router "python -m sglang_router.launch_router --pd-disaggregation --prefill http://127.0.0.1:30000 --decode http://127.0.0.1:30001" C-m
screen -S spare -X stuff 'python -m sglang.launch_server --model-path /models/spare --port 30002\n'
screen -dmS other bash -c 'sglang serve /models/other --port 30003; exec bash'
