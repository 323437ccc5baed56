#!/usr/bin/env bash
# usage: presets.sh small|medium|large [port]
preset=${1:-small}
port=${2:-30000}

case "$preset" in
  small)
    model=Qwen/Qwen3-0.6B
    args="--tp 1"
    ;;
  medium)
    model=Qwen/Qwen3-32B
    args="--tp 4 --attention-backend fa3"
    ;;
  large | xl)
    model=deepseek-ai/DeepSeek-V3
    args="--tp 8 --dp 8 --enable-dp-attention"
    spec="--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    ;;
  *)
    echo "unknown preset $preset" >&2
    exit 2
    ;;
esac

sglang serve "$model" $args $spec --port "$port"
