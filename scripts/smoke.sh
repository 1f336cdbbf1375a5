#!/usr/bin/env bash
# One tour through a running service, wherever it runs: the local host, Core Tools, a deployment. Says what it checked.
# usage: smoke.sh [--without CHECK]... BASE_URL KEYS_FILE
# KEYS_FILE: JSON, {"member": "API key", ...}; two members, one of whom may approve what the other one makes
# Exit code: 0 all is well, 1 a check failed, 2 wrong usage.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
for python in "${PYTHON:-}" "$root/.venv/bin/python" python3 python; do
  if [ -n "$python" ] && command -v "$python" >/dev/null; then PYTHONPATH=$root exec "$python" -m scripts.smoke "$@"; fi
done
echo "Python 3 is needed" >&2
exit 2
