"""Tests of the exchange of a sign-in code for a token."""

from pathlib import Path

import pytest

from local.sign_in.codes import open_sign_in_codes
from local.sign_in.exchange import SignInExchange
from shared.errors import WorkspaceError


@pytest.mark.parametrize(
    ("method", "body", "code"),
    [
        ("GET", b"", "METHOD_NOT_ALLOWED"),
        ("POST", b"", "INVALID_REQUEST"),
        ("POST", b"[]", "INVALID_REQUEST"),
        ("POST", b'{"code": 7}', "INVALID_REQUEST"),
        ("POST", b'{"code": "unknown"}', "SIGN_IN_CODE_INVALID"),
    ],
)
async def test_a_request_without_a_valid_code_gets_no_token(
    tmp_path: Path, method: str, body: bytes, code: str
) -> None:
    """A GET request, a malformed body and an unknown code each get an error code and no token."""
    with pytest.raises(WorkspaceError) as raised:
        await SignInExchange(open_sign_in_codes(tmp_path)).handle(method, body)
    assert raised.value.code == code
