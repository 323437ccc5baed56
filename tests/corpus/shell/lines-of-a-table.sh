#!/bin/bash
# name        model               tp  extra
while read -r name model tp extra; do
  [[ -z $name || $name == \#* ]] && continue
  screen -dmS "$name" python3 -m sglang.launch_server --served-model-name "$name" --model-path "$model" --tp "$tp" $extra
done <<'TABLE'
chat          /models/chat        4   --attention-backend fa3
code          /models/code        8   --page-size 64 --enable-torch-compile
TABLE

for entry in "judge:/models/judge:2" "reward:/models/reward:1"; do
  IFS=':' read -r name model tp <<< "$entry"
  sglang serve "$model" --served-model-name "$name" --tp "$tp" &
done

mapfile -t COMMON <<'EOF'
--trust-remote-code
--host
0.0.0.0
EOF
python3 -m sglang.launch_server --model-path /models/last "${COMMON[@]}"

while IFS=, read -r model tp; do
  python3 -m sglang.launch_server --model-path "$model" --tp "$tp" --watchdog-timeout 3600
done < models.csv
