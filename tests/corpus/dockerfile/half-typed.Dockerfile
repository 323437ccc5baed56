FROM lmsysorg/sglang:v0.5.21
ENV TP=
CMD ["python3", "-m", "sglang.launch_server", "--model-path", "acme/dense", "--tp
