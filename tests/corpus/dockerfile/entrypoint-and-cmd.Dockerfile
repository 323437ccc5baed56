ARG SGLANG_TAG=v0.5.9
ARG REGISTRY
FROM ${REGISTRY:-docker.io}/lmsysorg/sglang:${SGLANG_TAG} AS runtime
ARG TP=8
ENV TP=${TP} MODEL="acme/large" PORT 30000
ENTRYPOINT ["python3", "-m", "sglang.launch_server", "--model-path", "acme/large"]
CMD ["--tp", "8", "--host", "0.0.0.0"]

FROM runtime AS debug
CMD ["--tp", "1", "--disable-cuda-graph"]

FROM runtime
ENTRYPOINT ["sglang", "serve"]
