#!/bin/bash
usage() { echo "usage: $0 -m MODEL [-t TP] [-p PORT] [-e] [-- FLAGS]" >&2; exit 2; }
TP=8
PORT=30000
EAGLE=""
while getopts "m:t:p:eh" opt; do
  case $opt in
    m) MODEL=$OPTARG ;;
    t) TP=$OPTARG ;;
    p) PORT=$OPTARG ;;
    e) EAGLE="--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4" ;;
    h | *) usage ;;
  esac
done
shift $((OPTIND - 1))
[ -n "$MODEL" ] || usage
exec python3 -m sglang.launch_server --model-path "$MODEL" --tp "$TP" --port "$PORT" $EAGLE "$@"
