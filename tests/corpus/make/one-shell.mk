.ONESHELL:
SHELL = /bin/bash
serve:
	set -e
	args=(--model-path acme/dense --tp 2)
	if [ -n "$$QUANT" ]; then args+=(--quantization "$$QUANT"); fi
	exec python3 -m sglang.launch_server "$${args[@]}"
