"""Tests of the restrictions that a caller's credential imposes."""

from dataclasses import replace

import pytest

from shared.auth.principals import ANONYMOUS, CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.auth.telemetry_binding import TelemetryBinding
from shared.errors import Kind, WorkspaceError

CALLER = Principal("ann", "ann", "Ann", frozenset({AccessRight.CATALOG_READ}), CredentialKind.JWT, "t1", None)


def test_an_unrestricted_caller_passes_each_check() -> None:
    """A member with an unrestricted token may manage credentials and use all rights of the member."""
    CALLER.require_no_connection_binding()
    CALLER.require_not_delegated()
    CALLER.require_right(AccessRight.CATALOG_READ)


def test_a_credential_with_a_telemetry_binding_cannot_create_credentials() -> None:
    """A credential that is bound to connections cannot create credentials, because a device could be stolen."""
    with pytest.raises(WorkspaceError) as raised:
        replace(CALLER, binding=TelemetryBinding(("rig",))).require_no_connection_binding()
    assert (raised.value.kind, raised.value.code) == (Kind.FORBIDDEN, "CREDENTIAL_BOUND")


@pytest.mark.parametrize(
    ("client", "via", "is_delegated"),
    [
        ("tool", CredentialKind.JWT, True),
        ("", CredentialKind.JWT, False),
        ("tool", CredentialKind.API_KEY, False),
    ],
)
def test_only_a_token_of_a_client_is_delegated(client: str, via: CredentialKind, *, is_delegated: bool) -> None:
    """A token counts as delegated only if an OAuth client received it after a consent."""
    caller = replace(CALLER, client_id=client, via=via)
    assert caller.is_delegated is is_delegated
    if is_delegated:
        with pytest.raises(WorkspaceError) as raised:
            caller.require_not_delegated()
        assert raised.value.code == "DELEGATED_TOKEN"
    else:
        caller.require_not_delegated()


def test_the_error_names_the_missing_right() -> None:
    """The error names the missing right, so that a person can ask an administrator for it."""
    with pytest.raises(WorkspaceError) as raised:
        CALLER.require_right(AccessRight.KEYS_MANAGE)
    assert (raised.value.code, raised.value.members) == (
        "ACCESS_RIGHT_MISSING",
        {"accessRight": AccessRight.KEYS_MANAGE},
    )


def test_audit_events_contain_no_empty_credential_id() -> None:
    """If a credential has no id, the id in audit events is null."""
    assert CALLER.describe_credential() == {"via": "jwt", "credentialId": "t1"}
    assert ANONYMOUS.describe_credential() == {"via": "nothing", "credentialId": None}
