"""Tests of the HTTP operations on API keys and tokens."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from functions import tokens
from shared.auth.ports import ApiKey, Team
from shared.auth.rights import AccessRight
from shared.catalog.models import Member
from shared.runtime import SYSTEM_RUNTIME
from shared.timestamps import now
from tests.thread_records import record_calls_in_event_loop

VIEWER = Member.model_validate({"id": "viewer@x", "name": "Viewer", "role": "Viewer"})
RIGHTS = frozenset({AccessRight.CATALOG_READ, AccessRight.KEYS_MANAGE})
KEYS = [
    ApiKey(key_id, b"salt", b"digest", principal, "key", RIGHTS, now(), None)
    for key_id, principal in (("AAAAAAAA", VIEWER.id), ("BBBBBBBB", "former@x"))
]


async def test_the_list_of_keys_is_serialised_in_a_worker_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply with all keys is built in a worker thread; it states the rights that the principals still have."""

    async def list_visible(_: object) -> list[ApiKey]:
        return KEYS

    async def get_team() -> Team:
        return Team("plant-a", {VIEWER.id: VIEWER}, audited=True)

    access = SimpleNamespace(
        api_keys=SimpleNamespace(list_visible=list_visible), directory=SimpleNamespace(get_team=get_team)
    )
    monkeypatch.setattr(tokens, "services", lambda: SimpleNamespace(access=access, runtime=SYSTEM_RUNTIME))
    calls = record_calls_in_event_loop(monkeypatch, tokens, "_key_to_json")
    call: Any = SimpleNamespace(principal=None)
    listed = json.loads((await tokens.list_keys(call)).body)["keys"]
    assert {each["keyId"]: each["accessRights"] for each in listed} == {
        "AAAAAAAA": [AccessRight.CATALOG_READ],
        "BBBBBBBB": [],
    }
    assert calls == [False, False]
