FROM lmsysorg/sglang:v0.5.22
RUN <<EOF
set -e
pip install "sglang==0.5.22"
cat > /opt/serve.sh <<'SCRIPT'
#!/bin/bash
exec sglang serve acme/dense --tp "${TP:-2}" "$@"
SCRIPT
python3 -m sglang.compile_deep_gemm --model acme/dense --tp 2
EOF
ENTRYPOINT ["bash", "/opt/serve.sh"]
