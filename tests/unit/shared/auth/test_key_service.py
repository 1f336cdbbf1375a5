"""Tests of creating, listing and revoking API keys."""

from dataclasses import replace

import pytest

from shared.auth import api_keys
from shared.auth.ports import Team
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from shared.auth.telemetry_binding import TelemetryBinding
from shared.catalog.models import Member
from shared.errors import Kind
from tests.thread_records import record_calls_in_event_loop
from tests.unit.shared.auth.conftest import ADMIN, EDITOR, SERVICE, VIEWER, Workspace, build_caller, catch_error

KEYS = frozenset({CredentialKind.JWT, CredentialKind.API_KEY})


async def test_the_event_of_a_key_of_the_command_has_no_credential(auth_workspace: Workspace) -> None:
    """If the deployment command creates an API key, the audit event contains no credential of a caller."""
    await auth_workspace.api_keys.issue_without_rights_check("command", EDITOR.id, "k")
    [event] = auth_workspace.trail
    assert event["AfterState"]["madeWith"] == {"via": "command", "credentialId": None}


async def test_key_cannot_exceed_rights_of_creator(auth_workspace: Workspace) -> None:
    """An API key cannot get a right that its creator lacks, even if the creator may manage keys."""
    manager = build_caller(VIEWER.id, Role.VIEWER)
    manager = Principal(
        **{name: getattr(manager, name) for name in Principal.__slots__ if name != "rights"},
        rights=manager.rights | {AccessRight.KEYS_MANAGE},
    )
    error = await catch_error(auth_workspace.api_keys.create(manager, "k", principal=ADMIN.id))
    assert error.kind is Kind.FORBIDDEN
    error = await catch_error(
        auth_workspace.api_keys.create(manager, "k", principal=ADMIN.id, rights=[AccessRight.AMENDMENT_APPROVE])
    )
    assert error.kind is Kind.INVALID
    issued = await auth_workspace.api_keys.create(manager, "k", principal=ADMIN.id, rights=[AccessRight.CATALOG_READ])
    assert issued.key.rights == frozenset({AccessRight.CATALOG_READ})


async def test_the_error_says_whether_caller_or_principal_lacks_a_right(auth_workspace: Workspace) -> None:
    """The error about a right says whether the caller or the principal of the new key lacks it."""
    approve, export, manage = AccessRight.AMENDMENT_APPROVE, AccessRight.COLD_DATA_EXPORT, AccessRight.KEYS_MANAGE
    admin = build_caller(ADMIN.id, Role.ADMIN)
    manager = replace(admin, rights=admin.rights - {export, approve})
    rights = [approve, export, manage, AccessRight.CATALOG_READ]
    error = await catch_error(auth_workspace.api_keys.create(manager, "k", principal=EDITOR.id, rights=rights))
    assert error.members["errors"] == [
        {"field": "rights", "message": f"{approve}: you and the key's principal do not have this right"},
        {"field": "rights", "message": f"{export}: you do not have this right"},
        {"field": "rights", "message": f"{manage}: the key's principal does not have this right"},
    ]


async def test_key_of_restricted_token_is_restricted(auth_workspace: Workspace) -> None:
    """An API key that is created with a restricted token cannot have all rights."""
    full = await auth_workspace.issuer.issue_token(
        build_caller(EDITOR.id, Role.EDITOR), None, ["Workspace.Catalog.Read"]
    )
    cut = await auth_workspace.authenticator(f"Bearer {full.token}", KEYS)
    key = await auth_workspace.api_keys.create(cut, "k")
    principal = await auth_workspace.authenticator(f"Bearer {key.api_key}", KEYS)
    assert principal.rights == {AccessRight.CATALOG_READ}


async def test_keys_of_other_members_require_right(auth_workspace: Workspace) -> None:
    """Creating, listing and revoking keys of another member requires the right to manage keys."""
    editor, viewer, admin = (
        build_caller(EDITOR.id, Role.EDITOR),
        build_caller(VIEWER.id, Role.VIEWER),
        build_caller(ADMIN.id, Role.ADMIN),
    )
    assert (await catch_error(auth_workspace.api_keys.create(viewer, "k", principal=EDITOR.id))).kind is Kind.FORBIDDEN
    key = (await auth_workspace.api_keys.create(admin, "k", principal=EDITOR.id)).key
    assert [seen.key_id for seen in await auth_workspace.api_keys.list_visible(editor)] == [key.key_id]
    assert await auth_workspace.api_keys.list_visible(viewer) == []
    assert (await catch_error(auth_workspace.api_keys.revoke(viewer, key.key_id))).kind is Kind.FORBIDDEN
    assert (await catch_error(auth_workspace.api_keys.revoke(admin, "AAAAAAAA"))).code == "API_KEY_NOT_FOUND"
    await auth_workspace.api_keys.revoke(editor, key.key_id)
    assert (await auth_workspace.api_keys.list_visible(editor))[0].revoked_at is not None


async def test_only_a_hash_of_a_key_is_stored(auth_workspace: Workspace) -> None:
    """The stored file contains no part of the secret of an API key."""
    issued = await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "k")
    secret = issued.api_key.split("_", 2)[2]
    stored = (await auth_workspace.store.load()).keys[issued.key.key_id]
    assert secret not in repr(stored)
    assert secret[:8] not in repr(stored)


async def test_retries_of_a_request_create_one_key(auth_workspace: Workspace) -> None:
    """Requests with the same seed return the same API key and record one event, even after the key was used."""
    first = await auth_workspace.api_keys.issue_without_rights_check("admin@x", "editor@x", "n", seed=b"work" * 8)
    assert (
        await auth_workspace.api_keys.issue_without_rights_check("admin@x", "editor@x", "n", seed=b"work" * 8) == first
    )
    assert list((await auth_workspace.store.load()).keys.values()) == [first.key]
    assert [event["ActionType"] for event in auth_workspace.trail] == ["ApiKey.Created"]
    await auth_workspace.store.store_last_use(first.key.key_id, first.key.created_at)
    again = await auth_workspace.api_keys.issue_without_rights_check("admin@x", "editor@x", "n", seed=b"work" * 8)
    assert (again.api_key, again.key.last_used_at) == (first.api_key, first.key.created_at)


async def test_a_device_key_can_only_write_telemetry(auth_workspace: Workspace) -> None:
    """An API key for devices can only have the right to write telemetry; the error names any other right."""
    binding = TelemetryBinding(("rig",))
    admin = build_caller(ADMIN.id, Role.ADMIN)
    error = await catch_error(
        auth_workspace.api_keys.create(admin, "k", rights=[AccessRight.CATALOG_READ], binding=binding)
    )
    assert "Workspace.Catalog.Read" in error.detail
    key = (await auth_workspace.api_keys.create(admin, "k", binding=binding)).key
    assert (key.rights, key.binding) == (frozenset({AccessRight.TELEMETRY_WRITE}), binding)


async def test_a_key_loses_the_rights_that_its_principal_loses(auth_workspace: Workspace) -> None:
    """If a principal loses a right, its API keys lose this right, too."""
    issued = await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "k")
    assert auth_workspace.team_now.list_effective_rights(issued.key) == sorted(EDITOR.access_rights)
    auth_workspace.team_now = replace(auth_workspace.team_now, members={VIEWER.id: VIEWER})
    assert auth_workspace.team_now.list_effective_rights(issued.key) == []


async def test_an_old_sign_in_creates_no_key_where_signatures_are_required(auth_workspace: Workspace) -> None:
    """If signatures are required, a member with an old sign-in cannot create an API key that could sign later."""
    auth_workspace.team_now = replace(auth_workspace.team_now, max_sign_in_age=300)
    person = build_caller(ADMIN.id, Role.ADMIN, CredentialKind.JWT, minutes_until_expiry=5)
    assert (await catch_error(auth_workspace.api_keys.create(person, "k"))).code == "REAUTHENTICATION_REQUIRED"
    assert (await auth_workspace.api_keys.create(person, "k", principal=SERVICE.id)).key.principal == SERVICE.id


async def test_a_credential_that_was_revoked_meanwhile_creates_no_key(auth_workspace: Workspace) -> None:
    """If the credential is revoked after its authentication, it creates no key, and no event is recorded."""
    key = await auth_workspace.api_keys.issue_without_rights_check("test", ADMIN.id, "k")
    caller = await auth_workspace.authenticator(f"Bearer {key.api_key}", KEYS)
    await auth_workspace.store.revoke_key_and_find_pending_event(key.key.key_id, key.key.created_at)
    for principal in (ADMIN.id, VIEWER.id):
        error = await catch_error(auth_workspace.api_keys.create(caller, "new", principal=principal))
        assert error.kind is Kind.UNAUTHENTICATED
    assert set((await auth_workspace.store.load()).keys) == {key.key.key_id}
    assert [event["ActionType"] for event in auth_workspace.trail] == ["ApiKey.Created"]


async def promote(auth_workspace: Workspace, member: Member) -> None:
    """Make a member an administrator."""
    changed = member.model_copy(update={"role": Role.ADMIN})
    members = {**auth_workspace.team_now.members, member.id: changed}
    auth_workspace.team_now = replace(auth_workspace.team_now, members=members)


async def test_a_key_for_another_member_does_not_get_later_rights(auth_workspace: Workspace) -> None:
    """Without `rights`, a key for another member has the rights that the member has at the time of its creation."""
    manager = build_caller(VIEWER.id, Role.VIEWER)
    manager = replace(manager, rights=manager.rights | {AccessRight.KEYS_MANAGE})
    given = await auth_workspace.api_keys.create(manager, "given", principal=SERVICE.id)
    assert given.key.rights == SERVICE.access_rights
    assert auth_workspace.trail[-1]["AfterState"]["accessRights"] == sorted(SERVICE.access_rights)
    by_given = await auth_workspace.authenticator(f"Bearer {given.api_key}", KEYS)
    second = await auth_workspace.api_keys.create(by_given, "second")
    await promote(auth_workspace, SERVICE)
    for issued in (given, second):
        assert auth_workspace.team_now.list_effective_rights(issued.key) == sorted(SERVICE.access_rights)
        caller = await auth_workspace.authenticator(f"Bearer {issued.api_key}", KEYS)
        assert caller.rights == SERVICE.access_rights


async def test_an_own_key_gets_later_rights(auth_workspace: Workspace) -> None:
    """Without `rights`, a member's own key and a key of the deployment command get later rights of the member."""
    own = await auth_workspace.api_keys.create(build_caller(VIEWER.id, Role.VIEWER), "own")
    command = await auth_workspace.api_keys.issue_without_rights_check("command", VIEWER.id, "issued by apply")
    await promote(auth_workspace, VIEWER)
    for issued in (own, command):
        caller = await auth_workspace.authenticator(f"Bearer {issued.api_key}", KEYS)
        assert caller.rights == ROLE_RIGHTS[Role.ADMIN]


async def test_a_credential_with_listed_rights_creates_no_key_that_gets_later_rights(
    auth_workspace: Workspace,
) -> None:
    """A key that is made with a credential of listed rights, or with its token, does not get later rights."""
    viewer, complete = build_caller(VIEWER.id, Role.VIEWER), sorted(VIEWER.access_rights)
    listed = await auth_workspace.api_keys.create(viewer, "listed", rights=complete)
    by_listed = await auth_workspace.authenticator(f"Bearer {listed.api_key}", KEYS)
    callers = [by_listed]
    for caller, scopes in ((by_listed, None), (viewer, complete)):
        token = await auth_workspace.issuer.issue_token(caller, None, scopes)
        callers.append(await auth_workspace.authenticator(f"Bearer {token.token}", frozenset({CredentialKind.JWT})))
    issued = [await auth_workspace.api_keys.create(caller, "derived") for caller in callers]
    await promote(auth_workspace, VIEWER)
    for key in issued:
        caller = await auth_workspace.authenticator(f"Bearer {key.api_key}", KEYS)
        assert caller.rights == VIEWER.access_rights


async def test_the_number_of_unrevoked_keys_of_a_principal_is_limited(
    auth_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key above the limit is rejected without an event, also if it is created for another member."""
    monkeypatch.setattr(api_keys, "MAX_UNREVOKED_KEYS", 2)
    admin, viewer = build_caller(ADMIN.id, Role.ADMIN), build_caller(VIEWER.id, Role.VIEWER)
    keys = [(await auth_workspace.api_keys.create(viewer, name)).key for name in ("first", "second")]
    for caller in (viewer, admin):
        error = await catch_error(auth_workspace.api_keys.create(caller, "third", principal=VIEWER.id))
        assert (error.kind, error.code, error.members["limit"]) == (Kind.CONFLICT, "TOO_MANY_API_KEYS", 2)
    assert len(auth_workspace.trail) == 2
    await auth_workspace.api_keys.create(admin, "of another member")
    await auth_workspace.api_keys.revoke(viewer, keys[0].key_id)
    await auth_workspace.api_keys.create(viewer, "third")


async def test_the_number_of_keys_of_the_command_is_not_limited(
    auth_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deployment command creates a key also for a member with the maximum number of keys."""
    monkeypatch.setattr(api_keys, "MAX_UNREVOKED_KEYS", 1)
    for name in ("first", "second"):
        await auth_workspace.api_keys.issue_without_rights_check("command", ADMIN.id, name)
    assert len((await auth_workspace.store.load()).keys) == 2


async def test_the_list_of_keys_is_built_in_a_worker_thread(
    auth_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys of a list are selected and sorted in a worker thread, because there can be thousands of them."""
    await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "k")
    calls = record_calls_in_event_loop(monkeypatch, Team, "find_key_end_time")
    assert len(await auth_workspace.api_keys.list_visible(build_caller(ADMIN.id, Role.ADMIN))) == 1
    assert calls == [False]


async def test_the_creation_and_revocation_of_a_key_load_no_other_keys(
    auth_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key is created with a key and revoked without loading all keys, of which there can be thousands."""
    issued = await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "k")
    caller = await auth_workspace.authenticator(f"Bearer {issued.api_key}", KEYS)
    monkeypatch.setattr(auth_workspace.store, "load", None)
    created = await auth_workspace.api_keys.create(caller, "new")
    await auth_workspace.api_keys.revoke(caller, created.key.key_id)
    assert await auth_workspace.store.is_revoked(created.key.key_id)


@pytest.mark.parametrize("key_id", ["", "AAAAAAA", "AAAAAAAA/", "aaaaaaaa", "A" * 2000, "\0"])
async def test_a_text_without_the_form_of_a_key_id_is_not_looked_up(
    auth_workspace: Workspace, monkeypatch: pytest.MonkeyPatch, key_id: str
) -> None:
    """A text that cannot be the id of a key is unknown, also if the store would reject it as an id."""
    monkeypatch.setattr(auth_workspace.store, "find_key", None)
    error = await catch_error(auth_workspace.api_keys.revoke(build_caller(ADMIN.id, Role.ADMIN), key_id))
    assert error.code == "API_KEY_NOT_FOUND"
