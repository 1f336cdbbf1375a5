"""Tests of the HTTP operations about consents to OAuth clients."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from functions import oauth_consent
from shared.auth.rights import AccessRight
from shared.oauth.grants import CodeProof, Grant
from shared.runtime import SYSTEM_RUNTIME
from shared.timestamps import now
from tests.thread_records import record_calls_in_event_loop

GRANT = Grant(
    grant_id="0001",
    member_id="viewer@x",
    client_id="tool",
    client_name="Tool",
    rights=frozenset({AccessRight.CATALOG_READ}),
    created_at=now(),
    code=CodeProof("digest", "challenge", "http://127.0.0.1/", now()),
)


async def test_the_list_of_grants_is_serialised_in_a_worker_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply with all grants is built in a worker thread, because there can be thousands of them."""

    async def list_visible_grants(_: object) -> list[Grant]:
        return [GRANT]

    oauth = SimpleNamespace(grants=SimpleNamespace(list_visible_grants=list_visible_grants))
    monkeypatch.setattr(oauth_consent, "services", lambda: SimpleNamespace(oauth=oauth, runtime=SYSTEM_RUNTIME))
    calls = record_calls_in_event_loop(monkeypatch, oauth_consent, "_grant_to_json")
    call: Any = SimpleNamespace(principal=None)
    listed = json.loads((await oauth_consent.list_grants(call)).body)["grants"]
    assert [(each["id"], each["accessRights"]) for each in listed] == [("0001", [AccessRight.CATALOG_READ])]
    assert calls == [False]
