"""Test of GraphQL over HTTP with the audit suite of the npm package graphql-http."""

import json

import pytest

from tests.node_suites import running
from tests.service.local_service import Service

AUDITS = 61


@pytest.mark.skipif(bool(running.find_missing_requirement()), reason=running.find_missing_requirement())
def test_every_audit_of_graphql_over_http_passes(service: Service) -> None:
    """The service passes each audit of the suite, at the levels must, should and may."""
    done = running.run_script("graphql_http.mjs", f"{service.url}/v1/plant-t/graphql", service.read_api_key("viewer@t"))
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert [one for one in results if one["status"] != "ok"] == []
    assert len(results) == AUDITS
