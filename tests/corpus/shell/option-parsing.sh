#!/usr/bin/env bash
TP=1
PORT=30000
EXTRA=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --tp) TP="$2"; shift 2 ;;
    --port=*) PORT="${1#*=}"; shift ;;
    --) shift; EXTRA=("$@"); break ;;
    -h|--help) echo "usage: $0"; exit 0 ;;
    *) EXTRA+=("$1"); shift ;;
  esac
done
exec python3 -m sglang.launch_server --model-path /models/m --tp "$TP" --port "$PORT" "${EXTRA[@]}"
