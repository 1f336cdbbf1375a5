"""Tests of the service against its OpenAPI document with Schemathesis."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.local_service import Service

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")


def run_schemathesis(service: Service, tmp_path: Path, *options: str) -> None:
    """Run Schemathesis on all operations that an editor may call."""
    caller = service.create_client("editor@t")
    paths = caller.get("/oi-api/openapi").json()["paths"]
    command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(CONFIGURATION)]
    command += ["run", f"{service.url}/oi-api/openapi", "-H", f"Authorization: {caller.headers['Authorization']}"]
    done = subprocess.run(
        [*command, "--no-color", *options],
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(CONFIGURATION.parent)},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Schemathesis does not test the URL of the document itself.
    assert f"Tested: {sum(map(len, paths.values())) - 1}\n" in done.stdout, done.stdout


def test_replies_follow_the_openapi_document(own_service: Service, tmp_path: Path) -> None:
    """Replies to valid and invalid requests follow the OpenAPI document."""
    run_schemathesis(own_service.start(), tmp_path, "--phases", "examples,coverage")


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_replies_to_many_random_requests_follow_the_openapi_document(
    own_service: Service, tmp_path: Path, seed: int
) -> None:
    """Replies to a large number of random requests follow the OpenAPI document."""
    run_schemathesis(own_service.start(), tmp_path, "--max-examples", "60", "--seed", str(seed))
