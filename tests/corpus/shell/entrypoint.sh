#!/bin/sh
# The entry point of an image: flags alone are given to the server.
set -e
: "${PORT:=30000}"
DEFAULTS="${SGLANG_DEFAULTS:---host 0.0.0.0 --enable-metrics}"

if [ "${1#-}" != "$1" ] || [ $# -eq 0 ]; then
  set -- python3 -m sglang.launch_server $DEFAULTS --port "$PORT" "$@"
fi
exec "$@"
