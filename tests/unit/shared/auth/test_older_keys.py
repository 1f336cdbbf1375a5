"""Tests of finding the creators of API keys that an earlier version of the service issued."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from shared.auth.authenticator import Authenticator
from shared.auth.credential_lineage import CredentialLineage
from shared.auth.key_service import ApiKeys
from shared.auth.older_keys import MAX_EVENTS, RETRY_SECONDS, OlderKeyCreators
from shared.auth.ports import ApiKey
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight, Role
from shared.errors import Kind, WorkspaceError
from shared.timestamps import now
from tests.unit.shared.auth.conftest import ADMIN, EDITOR, SERVICE, VIEWER, Workspace, build_caller, catch_error
from tests.virtual_time import VirtualTime

COMMAND = {"via": "command", "credentialId": None}
KEY = ApiKey("AAAAAAAA", b"salt", b"digest", EDITOR.id, "older", None, now(), None, creators=None)
CALLER_WITH_OLDER_KEY = Principal(
    *(EDITOR.id, EDITOR.id, "E", frozenset(AccessRight), CredentialKind.API_KEY, KEY.key_id, None), personal=False
)


def build_event(user: str, creating_credential: Any) -> dict[str, Any]:
    """Return the audit event about the creation of an API key or token."""
    return {"UserID": user, "AfterState": {"principal": EDITOR.id, "madeWith": creating_credential}}


class Events:
    """Fake audit log that returns events by their append ids, as events about the credential that the append id names.

    Attributes:
        requests: append ids of the requested events.
        is_down: True if the store does not respond.
    """

    def __init__(self, events: Mapping[str, Mapping[str, Any]]) -> None:
        self.events = events
        self.requests: list[str] = []
        self.is_down = False

    async def find(self, append_id: str) -> Mapping[str, Any] | None:
        """Return the audit event with the given append id."""
        self.requests.append(append_id)
        if self.is_down:
            raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "down")
        event = self.events.get(append_id)
        kind, _, credential_id = append_id.rpartition("-")
        action, entity_type = ("ApiKey.Created", "ApiKey") if kind == "key-created" else ("Token.Issued", "Token")
        names = {"ActionType": action, "EntityType": entity_type, "EntityID": credential_id}
        return None if event is None else {**names, **event}


def build_key_service(auth_workspace: Workspace, events: Events) -> ApiKeys:
    """Return a service for API keys that reads the creators of older keys from audit events."""
    return ApiKeys(
        auth_workspace,
        auth_workspace.store,
        auth_workspace.credentials,
        auth_workspace.audit,
        auth_workspace.revoker,
        older_keys=OlderKeyCreators(events.find),
    )


@pytest.mark.parametrize(
    ("events", "creators"),
    [
        ({}, None),
        ({"key-created-AAAAAAAA": build_event("local-host", "command")}, ()),
        ({"key-created-AAAAAAAA": build_event(ADMIN.id, COMMAND)}, ()),
        ({"key-created-AAAAAAAA": build_event(ADMIN.id, "entra 1")}, (ADMIN.id,)),
        ({"key-created-AAAAAAAA": build_event(EDITOR.id, {"via": "entra", "credentialId": "1"})}, ()),
        ({"key-created-AAAAAAAA": {"UserID": ADMIN.id}}, (ADMIN.id,)),
        ({"key-created-AAAAAAAA": {"UserID": EDITOR.id, "AfterState": None}}, ()),
        (
            {
                "key-created-AAAAAAAA": build_event(EDITOR.id, "apiKey BBBBBBBB"),
                "key-created-BBBBBBBB": build_event(EDITOR.id, "command"),
            },
            (),
        ),
        (
            {
                "key-created-AAAAAAAA": build_event(EDITOR.id, "jwt 01"),
                "token-issued-01": build_event(EDITOR.id, {"via": "apiKey", "credentialId": "BBBBBBBB"}),
                "key-created-BBBBBBBB": build_event(ADMIN.id, {"via": "entra", "credentialId": "2"}),
            },
            (ADMIN.id,),
        ),
        (
            {
                "key-created-AAAAAAAA": build_event(EDITOR.id, "jwt 01"),
                "token-issued-01": {"UserID": EDITOR.id, "AfterState": {"via": "apiKey"}},
            },
            (),
        ),
        ({"key-created-AAAAAAAA": build_event(EDITOR.id, "apiKey BBBBBBBB")}, None),
        ({"key-created-AAAAAAAA": build_event(EDITOR.id, "apiKey AAAAAAAA")}, None),
    ],
)
async def test_creators_of_a_key_are_read_from_audit_events(
    events: dict[str, dict[str, Any]], creators: tuple[str, ...] | None
) -> None:
    """The creators of a key are read from its audit event and from the events of the credentials that created it."""
    found = Events(events)
    older_keys = OlderKeyCreators(found.find)
    assert await older_keys.find_creator_ids(KEY) == creators
    count = len(found.requests)
    assert 1 <= count <= MAX_EVENTS
    assert await older_keys.find_creator_ids(KEY) == creators
    assert len(found.requests) == count


@pytest.mark.parametrize(
    "other",
    [{"EntityID": "BBBBBBBB"}, {"EntityType": "Token"}, {"ActionType": "ApiKey.Revoked"}],
    ids=["key", "type", "action"],
)
async def test_an_event_about_something_else_names_no_creator(other: dict[str, str]) -> None:
    """An event with the append id of a credential names no creator if it is not about the credential's creation."""
    events = Events({"key-created-AAAAAAAA": {**build_event(ADMIN.id, "entra 1"), **other}})
    assert await OlderKeyCreators(events.find).find_creator_ids(KEY) is None


async def test_the_error_about_a_damaged_audit_log_is_unchanged() -> None:
    """If the audit log's file is damaged, the error says so, has no Retry-After, and causes no read for seconds."""
    error = WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "The file is damaged.", retryAfter=None)
    reads: list[str] = []

    async def fail(append_id: str) -> None:
        reads.append(append_id)
        raise error

    older_keys = OlderKeyCreators(fail)
    assert [await catch_error(older_keys.find_creator_ids(KEY)) for _ in range(2)] == [error, error]
    assert len(reads) == 1


async def test_an_outage_while_reading_creators_is_not_cached() -> None:
    """If the audit log does not respond, this is an error; seconds later, the events are read again."""
    time = VirtualTime(now())
    events = Events({"key-created-AAAAAAAA": build_event(EDITOR.id, "command")})
    older_keys = OlderKeyCreators(events.find, runtime=time.runtime)
    events.is_down = True
    errors = [await catch_error(older_keys.find_creator_ids(KEY)) for _ in range(3)]
    assert {(each.kind, each.code) for each in errors} == {(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE")}
    assert len(events.requests) == 1
    events.is_down = False
    time.advance(RETRY_SECONDS)
    assert await older_keys.find_creator_ids(KEY) == ()


async def test_the_origin_of_a_credential_is_the_same_during_an_outage(auth_workspace: Workspace) -> None:
    """A request and its retry have the same origin, also if the audit log does not respond to one of them."""
    older = await auth_workspace.api_keys.issue_without_rights_check(EDITOR.id, EDITOR.id, "older", creators=None)
    time = VirtualTime(now())
    events = Events({f"key-created-{older.key.key_id}": build_event(EDITOR.id, "command")})
    older_keys = OlderKeyCreators(events.find, runtime=time.runtime)
    lineage = CredentialLineage(auth_workspace.store, older_keys=older_keys)
    authenticator = Authenticator(
        *(auth_workspace, auth_workspace.credentials, auth_workspace.store, auth_workspace.codec, None),
        older_keys=older_keys,
    )
    origins = []
    for events.is_down in (True, False):
        caller = await authenticator(f"Bearer {older.api_key}", frozenset({CredentialKind.API_KEY}))
        origins.append((caller.personal, await lineage.describe_persons_who_may_know_credential(caller)))
        time.advance(RETRY_SECONDS)
    assert origins == [(False, [f"\0key {older.key.key_id}"]), (True, [f"\0key {older.key.key_id}"])]


@pytest.mark.parametrize(
    ("is_down", "code"), [(False, "MAKER_CHECKER_VIOLATION"), (True, "PROVENANCE_UNAVAILABLE")], ids=["missing", "down"]
)
async def test_a_caller_with_a_key_of_an_unknown_creator_cannot_decide(
    auth_workspace: Workspace, code: str, *, is_down: bool
) -> None:
    """A decision is rejected if the creators of the caller's API key are unknown, because one may be the author."""
    await auth_workspace.store.add_or_get_key(KEY)
    events = Events({})
    events.is_down = is_down
    lineage = CredentialLineage(auth_workspace.store, older_keys=OlderKeyCreators(events.find))
    error = await catch_error(lineage.find_author_ids_caller_cannot_approve(CALLER_WITH_OLDER_KEY, auth_workspace))
    assert error.code == code


@pytest.mark.parametrize(
    ("events", "of_admin", "of_editor"),
    [
        ({}, {SERVICE.id}, {SERVICE.id}),
        ({"key-created-AAAAAAAA": build_event(ADMIN.id, "entra 1")}, {SERVICE.id}, set()),
        ({"key-created-AAAAAAAA": build_event(ADMIN.id, COMMAND)}, set(), set()),
    ],
    ids=["unknown", "member", "command"],
)
async def test_the_creator_of_a_services_older_key_counts_as_the_service(
    auth_workspace: Workspace, events: dict[str, dict[str, Any]], of_admin: set[str], of_editor: set[str]
) -> None:
    """The creator of an older key of a service cannot decide about its edits; nobody can if the creator is unknown."""
    await auth_workspace.store.add_or_get_key(replace(KEY, principal=SERVICE.id))
    lineage = CredentialLineage(auth_workspace.store, older_keys=OlderKeyCreators(Events(events).find))
    found = [
        await lineage.find_author_ids_caller_cannot_approve(build_caller(each.id, Role.ADMIN), auth_workspace)
        for each in (ADMIN, EDITOR)
    ]
    assert found == [of_admin, of_editor]


async def test_keys_of_an_unknown_creator_stay_unknown(auth_workspace: Workspace) -> None:
    """A key whose creation used a credential of unknown origin has unknown creators and cannot sign."""
    caller = replace(CALLER_WITH_OLDER_KEY, via=CredentialKind.JWT, credential_id="c")
    created = await auth_workspace.api_keys.create(caller, "k")
    assert (await auth_workspace.store.load()).keys[created.key.key_id].creators is None
    principal = await auth_workspace.authenticator(f"Bearer {created.api_key}", frozenset({CredentialKind.API_KEY}))
    assert not principal.personal


async def test_a_key_for_another_member_has_unknown_creators_too(auth_workspace: Workspace) -> None:
    """A key for another member has unknown creators if those of the key with which it was created are unknown."""
    await auth_workspace.store.add_or_get_key(KEY)
    api_keys = build_key_service(auth_workspace, Events({}))
    created = await api_keys.create(CALLER_WITH_OLDER_KEY, "k", principal=VIEWER.id, rights=[])
    assert created.key.creators is None


async def test_no_key_is_created_while_the_creators_of_the_callers_key_cannot_be_read(
    auth_workspace: Workspace,
) -> None:
    """While the audit log does not name the creators of the caller's older key, the caller cannot create keys."""
    await auth_workspace.store.add_or_get_key(KEY)
    events = Events({})
    events.is_down = True
    error = await catch_error(build_key_service(auth_workspace, events).create(CALLER_WITH_OLDER_KEY, "k"))
    assert error.code == "PROVENANCE_UNAVAILABLE"
    assert list((await auth_workspace.store.load()).keys) == [KEY.key_id]


async def test_the_creator_of_an_older_key_counts_for_keys_created_with_it(auth_workspace: Workspace) -> None:
    """The creator of an older key also counts as a creator of the keys that were created with it."""
    await auth_workspace.store.add_or_get_key(KEY)
    events = Events({"key-created-AAAAAAAA": build_event(ADMIN.id, "entra 1")})
    lineage = CredentialLineage(auth_workspace.store, older_keys=OlderKeyCreators(events.find))
    assert await lineage.find_key_creator_ids(CALLER_WITH_OLDER_KEY) == frozenset({ADMIN.id})
    created = await build_key_service(auth_workspace, events).create(CALLER_WITH_OLDER_KEY, "k")
    assert created.key.creators == (ADMIN.id,)
