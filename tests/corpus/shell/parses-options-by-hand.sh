#!/usr/bin/env bash
# serve.sh [--model M] [--tp N] [--fp8] [--spec] [--] FLAGS…
MODEL=/models/default
TP=4
ARGS=(--enable-metrics)
while [[ $# -gt 0 ]]; do
  case "$1" in
    --model)
      MODEL="$2"
      shift 2
      ;;
    --tp=*)
      TP="${1#*=}"
      shift
      ;;
    --fp8)
      ARGS+=(--quantization fp8 --kv-cache-dtype fp8_e4m3)
      shift
      ;;
    --spec)
      ARGS+=(--speculative-algorithm NGRAM --speculative-num-draft-tokens 8)
      shift
      ;;
    --)
      shift
      break
      ;;
    *)
      echo "unknown option $1" >&2
      exit 1
      ;;
  esac
done
sglang serve --model-path "$MODEL" --tp "$TP" "${ARGS[@]}" "$@"
