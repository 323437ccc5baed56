FROM lmsysorg/sglang:v0.5.15 AS server
ENV SGLANG_HOST_PORT=30000
CMD ["sglang", "serve", "--model-path", "acme/dense", "--tp", "2"]

FROM python:3.12-slim AS client
RUN pip install openai
CMD ["python", "client.py"]

FROM server AS final
RUN pip install -U sglang==0.5.20
CMD exec sglang serve --model-path acme/dense \
      --tp 4 \
      --port $SGLANG_HOST_PORT
