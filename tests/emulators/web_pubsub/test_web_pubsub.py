"""Tests of the Web PubSub emulator as a separate process."""

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import jwt
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "emulators.web_pubsub", "--port", "0"]


def test_process_prints_its_url_and_exits_cleanly() -> None:
    """The emulator prints a line with its URL when it is ready, and exits with 0 after SIGTERM."""
    command = [*COMMAND, "--access-key", "k" * 32]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("ready ").strip()
            assert httpx.get(f"{url}/api/health", trust_env=False).status_code == 200
        finally:
            process.terminate()
        assert process.wait(timeout=20) == 0


async def test_no_token_is_logged() -> None:
    """At any log level, the log contains no access token."""
    key = "k" * 32
    command = [*COMMAND, "--access-key", key]
    environment = os.environ | {"LOG_LEVEL": "DEBUG"}
    with subprocess.Popen(  # noqa: ASYNC220  the test has nothing else to do
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("ready http").strip()
            url = f"ws{url}/client/hubs/live"
            token = jwt.encode({"aud": url, "exp": int(time.time()) + 60}, key, algorithm="HS256")
            async with connect(f"{url}?access_token={token}"):
                pass
            with pytest.raises(InvalidStatus):
                await connect(f"{url}?access_token={token[:-4]}AAAA")
        finally:
            process.terminate()
        _, log = process.communicate(timeout=20)
    assert "access_token" not in log
    assert token[:20] not in log


def test_an_unknown_log_level_is_rejected() -> None:
    """If LOG_LEVEL is not a log level, the emulator does not start, and names the setting."""
    environment = os.environ | {"LOG_LEVEL": "Information"}
    command = [*COMMAND, "--access-key", "k" * 32]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("the emulator does not start: LOG_LEVEL must be DEBUG, INFO,")


def test_a_short_access_key_is_rejected() -> None:
    """An access key of less than 32 bytes is rejected."""
    ended = subprocess.run([*COMMAND, "--access-key", "short"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "at least 32 bytes" in ended.stderr
