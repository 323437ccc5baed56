# Builds the router beside the servers (they run `python3 -m sglang.launch_server --tp 8`).
FROM lmsysorg/sglang-router:v0.2.4
RUN echo "see sglang serve --help"
ENTRYPOINT ["python3", "-m", "sglang_router.launch_router"]
CMD ["--worker-urls", "http://a:30000", "--policy", "cache_aware"]
FROM vllm/vllm-openai:v0.10.0
CMD ["--model", "acme/dense", "--attention-backend", "FLASH_ATTN"]
