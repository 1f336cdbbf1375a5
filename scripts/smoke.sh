#!/usr/bin/env bash
# Smoke test of a running service: the local host, Core Tools or a deployment. Prints a line for each check.
# usage: smoke.sh [--without CHECK]... [--connection LOOKUP] BASE_URL KEYS_FILE
# KEYS_FILE: JSON, {"member": "API key", ...}; two members, one of whom may approve the amendments of the other. With the
# policy requireBoundKeys also a key that is bound to a connection, under any name.
# Exit code: 0 if no check failed, 1 if a check failed, 2 for wrong usage.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
for python in "${PYTHON:-}" "$root/.venv/bin/python" python3 python; do
  if [ -n "$python" ] && command -v "$python" >/dev/null; then PYTHONPATH=$root exec "$python" -m scripts.smoke "$@"; fi
done
echo "Python 3 is required" >&2
exit 2
