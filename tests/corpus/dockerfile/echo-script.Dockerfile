FROM nvidia/cuda:12.9.0-devel-ubuntu22.04
ARG SGLANG_VERSION=0.5.12
RUN pip install --no-cache-dir "sglang[all]==${SGLANG_VERSION}" && \
    # a comment between lines is no argument
    pip cache purge
RUN echo '#!/bin/bash' > /start.sh && \
    echo 'exec python3 -m sglang.launch_server --model-path "$MODEL" --tp 2 --enable-metrics' >> /start.sh && \
    chmod +x /start.sh
CMD ["/start.sh"]
