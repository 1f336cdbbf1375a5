"""Tests of OAuth scopes (lists of access rights)."""

import pytest

from shared.auth.rights import AccessRight
from shared.oauth.errors import OAuthError, OAuthErrorCode
from shared.oauth.scopes import format_scope, parse_scope


def test_a_scope_is_parsed_and_formatted() -> None:
    """A scope is a list of access rights separated by spaces; order and repetitions do not matter."""
    rights = parse_scope(" Workspace.Mcp.Use Workspace.Catalog.Read  Workspace.Mcp.Use")
    assert rights == {AccessRight.CATALOG_READ, AccessRight.MCP_USE}
    assert format_scope(rights) == "Workspace.Catalog.Read Workspace.Mcp.Use"


@pytest.mark.parametrize("scope", ["", " ", "Workspace.Nothing", "workspace.mcp.use", "Workspace.Mcp.Use,x", "a\tb"])
def test_empty_and_unknown_scopes_are_invalid(scope: str) -> None:
    """An empty scope and an unknown right get the error `invalid_scope`."""
    with pytest.raises(OAuthError) as caught:
        parse_scope(scope)
    assert caught.value.error is OAuthErrorCode.INVALID_SCOPE
