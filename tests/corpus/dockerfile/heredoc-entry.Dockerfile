FROM lmsysorg/sglang:v0.5.20
COPY <<'EOF' /entry.sh
#!/usr/bin/env bash
set -euo pipefail
exec python3 -m sglang.launch_server \
  --config /etc/sglang/serve.yaml \
  "$@"
EOF
COPY --chmod=644 <<EOF /etc/sglang/serve.yaml
model-path: acme/moe
tp-size: 8
page-size: 64
EOF
RUN chmod +x /entry.sh
ENTRYPOINT ["/entry.sh"]
CMD ["--host", "0.0.0.0", "--mem-fraction-static", "0.85"]
