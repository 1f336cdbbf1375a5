"""Lint tests of the OpenAPI document; the rule files of the linters state why a rule is disabled."""

import json
from pathlib import Path

import pytest

from tests.node_suites import running
from tests.service.local_service import Service

pytestmark = pytest.mark.skipif(bool(running.find_missing_requirement()), reason=running.find_missing_requirement())


@pytest.fixture(scope="module")
def document(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with the OpenAPI document that an administrator receives."""
    reply = service.create_client("admin@t").get("/oi-api/openapi")
    assert reply.status_code == 200, reply.text
    path = tmp_path_factory.mktemp("lint") / "openapi.json"
    path.write_bytes(reply.content)
    return path


def test_spectral_reports_no_violation(document: Path) -> None:
    """Spectral reports no violation of its OpenAPI and OWASP API Security rules."""
    done = running.run_script(
        "node_modules/@stoplight/spectral-cli/dist/index.js",
        *("lint", str(document), "--ruleset", str(running.FOLDER / "spectral.yaml"), "-f", "json"),
        *("--fail-severity", "hint"),
    )
    found = json.loads(done.stdout.partition("No results")[0])
    assert (done.returncode, found) == (0, []), done.stdout + done.stderr


def test_redocly_reports_no_violation(document: Path) -> None:
    """Redocly reports no violation of its strict rules."""
    done = running.run_script(
        "node_modules/@redocly/cli/bin/cli.js",
        *("lint", str(document), "--config", str(running.FOLDER / "redocly.yaml"), "--format", "json"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["problems"] == []
