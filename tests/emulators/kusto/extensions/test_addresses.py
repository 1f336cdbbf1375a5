"""Functions of network addresses, with the answers of their documentation."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

VALUES: list[tuple[str, Any]] = [
    ("ipv4_compare('192.168.1.1/24','192.168.1.255/24')", 0),
    ("ipv4_compare('127.0.0.1','127.0.0.2')", -1),
    ("ipv4_is_match('192.168.1.1','192.168.1.255',24)", True),
    ("ipv4_is_in_range('192.168.1.6','192.168.1.0/24')", True),
    ("ipv4_is_in_range('192.168.2.6','192.168.1.0/24')", False),
    ("ipv4_is_private('192.168.1.1/24')", True),
    ("ipv4_is_private('202.1.2.3')", False),
    ("isnull(ipv4_is_private('127.0..1'))", True),
    ("ipv4_is_match('127.0.0.1','x')", None),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_values(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A function of addresses answers what its documentation says."""
    (answer,) = endpoint.rows(f"print x = {expression}")[0]
    assert type(answer) is type(value)
    assert answer == value
