"""Tests of the stored form of grants."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.auth.rights import AccessRight
from shared.auth.sign_ins import SignIn
from shared.oauth.grants import (
    CodeProof,
    EndReason,
    Grant,
    GrantEnd,
    RefreshState,
    grant_from_json,
    grant_to_json,
)

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
GRANT = Grant(
    "g1", "ann", "tool", "Tool", frozenset({AccessRight.CATALOG_READ}), AT, CodeProof("d", "c", "https://t/", AT)
)
REFRESH = RefreshState("f", "d", AT + HOUR, AT, AT)
END = GrantEnd(AT, EndReason.MEMBER, "ann", {"via": "jwt"})


@pytest.mark.parametrize(
    "grant",
    [
        GRANT,
        replace(GRANT, refresh=REFRESH, token_id="t", ancestor_ids=("p", "r"), api_key_id="k", credential_ends_at=AT),
        replace(GRANT, sign_in=SignIn(AT, ("pwd", "mfa"), "s1"), end=END),
        replace(GRANT, end=replace(END, made_with=None, is_recorded=True)),
    ],
)
def test_a_stored_grant_is_read_with_all_attributes(grant: Grant) -> None:
    """A grant that is stored and read again has the same attributes."""
    assert grant_from_json(grant_to_json(grant)) == grant


def test_an_unknown_right_of_a_stored_grant_is_ignored() -> None:
    """If a stored grant has a right that no longer exists, it is read without this right."""
    stored = grant_to_json(GRANT)
    stored["rights"].append("Workspace.Removed.Right")
    assert grant_from_json(stored) == GRANT


@pytest.mark.parametrize(
    ("grant", "is_active"),
    [
        (GRANT, False),
        (replace(GRANT, refresh=REFRESH), True),
        (replace(GRANT, refresh=replace(REFRESH, expires_at=AT)), False),
        (replace(GRANT, refresh=REFRESH, end=END), False),
    ],
)
def test_a_grant_is_active_between_the_exchange_and_its_end(grant: Grant, *, is_active: bool) -> None:
    """A grant is active from the exchange of its code until it ends or its refresh token expires."""
    assert grant.is_active(AT) is is_active
    assert grant.expires_at == (AT if grant.refresh is None else grant.refresh.expires_at)


def test_a_grant_of_an_earlier_version_is_read() -> None:
    """A stored grant without the ids of its token's ancestors is read as a grant without ancestors."""
    stored = {name: value for name, value in grant_to_json(GRANT).items() if name != "ancestorIds"}
    assert grant_from_json(stored) == GRANT
