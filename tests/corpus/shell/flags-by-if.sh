#!/bin/bash
if [ "$TP" = "8" ]; then
  PARALLEL="--tp 8 --dp 8 --enable-dp-attention"
  MEM=0.82
elif [ "$TP" = "4" ]; then
  PARALLEL="--tp 4"
  MEM=0.88
else
  PARALLEL="--tp $TP"
  MEM=0.9
fi

python3 -m sglang.launch_server --model-path $MODEL $PARALLEL --mem-fraction-static $MEM
