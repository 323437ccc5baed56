BACKEND ?= fa3
ifeq ($(GPU),b200)
BACKEND = trtllm_mha
EXTRA += --moe-runner-backend flashinfer_trtllm
else ifdef AMD
BACKEND = aiter
endif
ifeq (yes,no)
PAGE = 1
else
PAGE = 64
endif
export SGLANG_LOG_REQUESTS = 1
GPUS := $(shell nvidia-smi -L | wc -l)

define COMMON
--host 0.0.0.0 \
--port 30000
endef

launch:
	sglang serve acme/dense --attention-backend $(BACKEND) --page-size $(PAGE) --tp $(GPUS) $(COMMON) $(EXTRA)
ifdef DEBUG
	python -m sglang.launch_server --model-path acme/dense --log-level debug
endif
