#!/bin/bash
# Somebody chooses.
PS3="model? "
select model in /models/small /models/large; do
  case $model in
    */small) tp=1 ;;
    */large) tp=8 ;;
    *) continue ;;
  esac
  python3 -m sglang.launch_server --model-path "$model" --tp $tp
  break
done

coproc SERVER { python3 -m sglang.launch_server --model-path /models/co --port 30001; }
