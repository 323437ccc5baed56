#!/usr/bin/env bash
# The step of action.yml: installs spec-lsp from this checkout, checks, annotates, writes the summary. Inputs come as INPUT_*.
set -euo pipefail

venv="${RUNNER_TEMP:-$(mktemp -d)}/spec-lsp-venv"
[ -x "$venv/bin/spec-lsp" ] || {
  "${INPUT_PYTHON:-python3}" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "$SPEC_LSP_SOURCE"
}
spec_lsp="$venv/bin/spec-lsp"

arguments=()
for release in ${INPUT_SGLANG:-}; do arguments+=(--sglang "$release"); done
for gpu in ${INPUT_GPU:-}; do arguments+=(--gpu "$gpu"); done
[ -z "${INPUT_UPGRADE:-}" ] || arguments+=(--upgrade "$INPUT_UPGRADE")
[ -z "${INPUT_BASELINE:-}" ] || arguments+=(--baseline "$INPUT_BASELINE")
paths=()
while IFS= read -r path; do [ -z "$path" ] || paths+=("$path"); done <<<"${INPUT_PATHS:-.}"

code=0
"$spec_lsp" check --format github "${arguments[@]}" -- "${paths[@]}" || code=$?
[ -z "${INPUT_SARIF:-}" ] || "$spec_lsp" check --format sarif --output "$INPUT_SARIF" --exit-zero "${arguments[@]}" -- "${paths[@]}" || true

counts=$("$spec_lsp" check --format json --statistics --exit-zero "${arguments[@]}" -- "${paths[@]}" 2>/dev/null || true)
"$venv/bin/python" - "$counts" <<'PYTHON' >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
import json, sys
counts = json.loads(sys.argv[1] or "[]")
print("### SGLang launches\n")
if counts:
    print("| severity | rule | findings |\n| --- | --- | ---: |")
    for one in counts:
        print(f"| {one['severity']} | `{one['rule']}` ({one['code']}) | {one['count']} |")
else:
    print("spec-lsp has nothing to report.")
PYTHON
errors=$("$venv/bin/python" -c 'import json, sys; print(sum(c["count"] for c in json.loads(sys.argv[1] or "[]") if c["severity"] == "error"))' "$counts")
echo "errors=$errors" >>"${GITHUB_OUTPUT:-/dev/null}"

[ "$code" -le 1 ] || exit "$code"
[ "${INPUT_FAIL:-true}" = false ] || exit "$code"
