# spec-lsp: gpu=b200
FROM lmsysorg/sglang:v0.5.21
# spec-lsp: ignore[tree-drafting-on-trtllm-mha] an experiment
ONBUILD CMD ["python3", "-m", "sglang.launch_server", "--model-path", "acme/chat-8b", "--attention-backend", "trtllm_mha", "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "d", "--speculative-num-steps", "3", "--speculative-eagle-topk", "4", "--speculative-num-draft-tokens", "8"]
