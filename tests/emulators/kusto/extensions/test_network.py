"""Tests of functions over IPv4 and IPv6 addresses."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

EXAMPLES: list[tuple[str, Any]] = [
    ("format_ipv4('192.168.1.1', 24)", "192.168.1.0"),
    ("format_ipv4(3232235777)", "192.168.1.1"),
    ("format_ipv4('192.168.1.1/24', -1)", ""),
    ("format_ipv4_mask('192.168.1.1/24', 32)", "192.168.1.0/24"),
    ("has_ipv4('05:04:54 127.0.0.1 GET /favicon.ico 404', '127.0.0.1')", 1),
    ("has_ipv4('05:04:54 127.0.0.256 GET', '127.0.0.256')", 0),
    ("has_ipv4('05:04:54127.0.0.1 GET', '127.0.0.1')", 0),
    ("has_any_ipv4('a 127.0.0.1 b', '1.1.1.1', '127.0.0.1')", 1),
    ("has_any_ipv4('a 127.0.0.1 b', dynamic(['1.1.1.1']))", 0),
    ("has_ipv4_prefix('a 127.0.0.1 b', '127.0.')", 1),
    ("has_ipv4_prefix('a 127.0.0.1 b', '127.0')", 0),
    ("has_any_ipv4_prefix('a 127.0.0.1 b', dynamic(['1.', '127.0.0.1']))", 1),
    ("ipv4_range_to_cidr_list('1.1.128.0', '1.1.140.255')", ["1.1.128.0/21", "1.1.136.0/22", "1.1.140.0/24"]),
    ("ipv4_netmask_suffix('192.168.1.1/24')", 24),
    ("parse_ipv4_mask('127.0.0.1', 24)", 2130706432),
    ("parse_ipv4_mask('127.0.0.1', 33)", None),
    ("parse_ipv6_mask('192.168.255.255/24', 124)", "0000:0000:0000:0000:0000:ffff:c0a8:ff00"),
    ("parse_ipv6_mask('::10.1.2.3', 128)", "0000:0000:0000:0000:0000:ffff:0a01:0203"),
    ("parse_ipv6_mask('::10.1.2.3/16', 128)", "0000:0000:0000:0000:0000:ffff:0a01:0000"),
    ("parse_ipv6_mask('::ffff:10.1.2.3/112', 128)", "0000:0000:0000:0000:0000:ffff:0a01:0000"),
    ("ipv6_compare('::ffff:7f00:1', '127.0.0.1')", 0),
    ("ipv6_compare('::1', 'nothing')", None),
    ("ipv6_is_match('fe80::85d:e82c:9446:7994', 'fe80::85d:e82c:9446:7995', 127)", 1),
    ("ipv6_is_in_range('a5e:f127::abcd', 'a5e:f127::/32')", 1),
    ("ipv6_is_in_any_range('a5e:f127::abcd', dynamic(['::1', 'a5e::/16']))", 1),
    ("ipv4_is_in_any_range('192.168.1.6', '192.168.1.1/24', '10.0.0.1/8')", 1),
]


@pytest.mark.parametrize(("expression", "value"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_a_function_has_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A function returns the documented result; an invalid address gives null or the empty string."""
    assert endpoint.rows(f"print {expression}") == [[value]]
