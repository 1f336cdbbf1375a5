"""The stand-in in a process of its own."""

import subprocess
import sys
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "local.web_pubsub", "--port", "0"]


def test_it_says_where_it_serves_and_ends_cleanly() -> None:
    """The process prints one ready line, answers, and ends with 0 after SIGTERM."""
    command = [*COMMAND, "--access-key", "k" * 32]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("ready ").strip()
            assert httpx.get(f"{url}/api/health", trust_env=False).status_code == 200
        finally:
            process.terminate()
        assert process.wait(timeout=20) == 0


def test_a_short_access_key_is_refused() -> None:
    """An access key under 32 bytes does not start."""
    ended = subprocess.run([*COMMAND, "--access-key", "short"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "at least 32 bytes" in ended.stderr
