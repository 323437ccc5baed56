#!/usr/bin/env bash
# Run by a benchmark harness, which sets MODEL, TP, CONC, ISL, OSL and EP_SIZE.
source "$(dirname "$0")/../lib/bench.sh"

check_env_vars MODEL TP CONC ISL OSL

if [[ -n "$SLURM_JOB_ID" ]]; then
  echo "job $SLURM_JOB_ID on $SLURMD_NODENAME"
fi

SERVER_LOG=/workspace/server.log
PORT=${PORT:-8888}

if [[ $TP -eq 8 ]]; then
  EXTRA="--dp-size 8 --enable-dp-attention"
  MEM=0.82
elif [[ "$TP" == "4" ]]; then
  EXTRA=""
  MEM=0.85
else
  EXTRA="--ep-size $EP_SIZE"
  MEM=0.9
fi

set -x
SGLANG_ENABLE_SPEC_V2=1 PYTHONNOUSERSITE=1 python3 -m sglang.launch_server --model-path=$MODEL --host=0.0.0.0 --port=$PORT \
--trust-remote-code --tensor-parallel-size=$TP \
--mem-fraction-static $MEM --cuda-graph-max-bs $CONC --chunked-prefill-size 16384 $EXTRA \
--scheduler-recv-interval $( [[ $CONC -gt 4 ]] && echo 30 || echo 10 ) \
--context-length $((ISL + OSL + 20)) > $SERVER_LOG 2>&1 &

SERVER_PID=$!
wait_for_server_ready --port "$PORT" --server-log "$SERVER_LOG" --server-pid "$SERVER_PID"
run_benchmark_serving --model "$MODEL" --port "$PORT" --backend vllm --max-concurrency "$CONC"
