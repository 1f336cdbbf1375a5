"""Tests of the changed fields that the client computes for an amendment."""

import json
from typing import Any

import httpx
import pytest
from oi import Workspace


@pytest.mark.parametrize(
    ("original", "amended", "changed"),
    [
        ({"weight": 1, "unit": "kg"}, {"weight": 2, "unit": "kg"}, ["weight"]),
        ({"open": 1, "closed": False}, {"open": True, "closed": 0}, ["open", "closed"]),
        ({"doors": [0, 1]}, {"doors": [0, True]}, ["doors"]),
        ({"weight": 1}, {"weight": 1.0}, ["weight"]),
        ({"note": None, "unit": "kg"}, {"unit": "kg", "text": None}, ["note", "text"]),
        ({"limits": {"low": 1, "high": 2}}, {"limits": {"high": 2, "low": 1}}, []),
    ],
)
def test_the_changed_fields_of_an_amendment_are_those_whose_json_differs(
    monkeypatch: pytest.MonkeyPatch, original: dict[str, Any], amended: dict[str, Any], changed: list[str]
) -> None:
    """The changed fields are the properties whose JSON differs, and those that only one record has."""
    bodies: list[dict[str, Any]] = []

    def reply_to_request(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(201, json={})

    client = httpx.Client(base_url="https://plant.example", transport=httpx.MockTransport(reply_to_request))
    monkeypatch.setattr("oi._sync.transport.httpx.Client", lambda **_: client)
    with Workspace("https://plant.example", token="t") as workspace:
        workspace.amendments.create(
            "line-1",
            entity_type="Batch",
            entity_id="B-1",
            original=original,
            amended=amended,
            reason_category="Other",
        )
    assert [body["ChangedFields"] for body in bodies] == [changed]
