FROM lmsysorg/sglang:v0.5.16
WORKDIR /srv
ENV MODEL_PATH=/models/acme \
    TP_SIZE=4
ENV EXTRA_ARGS="--page-size 64 --trust-remote-code"
EXPOSE 30000
HEALTHCHECK CMD curl -f localhost:30000/health || python3 -m sglang.launch_server --help
CMD python3 -m sglang.launch_server --model-path ${MODEL_PATH} \
    # the number of GPUs in the node
    --tp ${TP_SIZE} --dp 3 --enable-dp-attention --port ${PORT:-30000} \

    $EXTRA_ARGS $MORE_ARGS
