# syntax=docker/dockerfile:1
FROM lmsysorg/sglang:v0.5.21-cu129

ENV SGLANG_ENABLE_SPEC_V2=1 \
    HF_HOME=/cache

CMD ["python3", "-m", "sglang.launch_server", \
     "--model-path", "acme/chat-8b", \
     # one chain of drafts only
     "--speculative-algorithm", "EAGLE3", \
     "--speculative-draft-model-path", "acme/chat-8b-eagle3", \
     "--speculative-num-steps", "3", \
     "--speculative-eagle-topk", "4", \
     "--speculative-num-draft-tokens", "8", \
     "--attention-backend", "fa4", "--page-size", "16", \
     "--json-model-override-args", "{\"rope_theta\": 1000}"]
