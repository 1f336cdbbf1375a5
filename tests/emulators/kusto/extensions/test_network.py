"""Tests of functions over IP addresses, and of the plugins ``ipv4_lookup`` and ``ipv6_lookup``."""

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
def test_ip_address_functions_have_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A function over IP addresses has the documented result; for an invalid address, it is null or empty."""
    assert endpoint.query_rows(f"print {expression}") == [[value]]


NETWORKS = """let IP_Data = datatable(network:string, continent_code:string, country_name:string)[
"111.68.128.0/17", "AS", "Japan", "5.8.0.0/19", "EU", "Russia", "223.255.254.0/24", "AS", "Singapore",
"46.36.200.51/32", "OC", "Cook Islands", "2.20.183.0/24", "EU", "United Kingdom"];
let IPs = datatable(ip:string)['2.20.183.12', '5.8.1.2', '192.165.12.17'];"""
MATCHED = [
    ["2.20.183.12", "2.20.183.0/24", "EU", "United Kingdom"],
    ["5.8.1.2", "5.8.0.0/19", "EU", "Russia"],
]
V6 = """let IP_Data = datatable(network:string, country_name:string)[
"2001:0db8:85a3::/48", "United States", "2404:6800:4001::/48", "Japan", "10.0.0.0/8", "Plant"];
let IPs = datatable(ip:string)["2001:0db8:85a3:0000:0000:8a2e:0370:7334", "10.1.2.3",
"a5e:f127:8a9d:146d:e102:b5d3:c755:abcd"];"""


def test_ipv4_lookup_joins_rows_with_the_networks_that_contain_their_address(endpoint: Endpoint) -> None:
    """The plugin ``ipv4_lookup`` joins each row with the networks that contain the row's address."""
    table = endpoint.query_table(f"{NETWORKS} IPs | evaluate ipv4_lookup(IP_Data, ip, network)")
    assert [column.column_name for column in table.columns] == ["ip", "network", "continent_code", "country_name"]
    assert table.raw_rows == MATCHED


@pytest.mark.parametrize("flag", ["return_unmatched = true", "true"])
def test_rows_without_a_network_have_empty_lookup_columns(endpoint: Endpoint, flag: str) -> None:
    """With ``return_unmatched``, a row without a network has empty lookup columns."""
    rows = endpoint.query_rows(f"{NETWORKS} IPs | evaluate ipv4_lookup(IP_Data, ip, network, {flag})")
    assert rows == [*MATCHED, ["192.165.12.17", "", "", ""]]


def test_ipv6_networks_match_ipv6_and_mapped_addresses(endpoint: Endpoint) -> None:
    """An IPv6 network matches IPv6 addresses, and IPv4 addresses in their IPv4-mapped form."""
    rows = endpoint.query_rows(f"{V6} IPs | evaluate ipv6_lookup(IP_Data, ip, network) | project country_name")
    assert rows == [["United States"], ["Plant"]]


def test_networks_match_containing_and_contained_networks(endpoint: Endpoint) -> None:
    """A network matches networks that contain it and networks inside it; an invalid text matches nothing."""
    query = (
        "datatable(ip:string)['10.0.0.0/8', '10.1.2.0/24', '11.0.0.0', 'x', '', '10.0.0.0/33', '::1'] | evaluate "
        "ipv4_lookup((datatable(net:string)['10.1.0.0/16', 'y', '', '1.2.3']), ip, net)"
    )
    assert endpoint.query_rows(query) == [["10.0.0.0/8", "10.1.0.0/16"], ["10.1.2.0/24", "10.1.0.0/16"]]


def test_network_lookups_require_equal_extra_keys(endpoint: Endpoint) -> None:
    """A row matches only if its extra keys are equal, too; a lookup column whose name is already used gets a number."""
    query = (
        "let f = (k:string) { datatable(ip:string, site:long)['10.1.2.3', 1, '10.1.2.3', 2] | evaluate ipv4_lookup("
        "(print net = '10.0.0.0/8', site = 2, ip = k), ip, net, site) }; f('abc')"
    )
    table = endpoint.query_table(query)
    assert [column.column_name for column in table.columns] == ["ip", "site", "net", "ip1"]
    assert table.raw_rows == [["10.1.2.3", 2, "10.0.0.0/8", "abc"]]


@pytest.mark.parametrize(
    "call",
    [
        "ipv4_lookup(IP_Data, ip)",
        "ipv4_lookup(IP_Data, ip, nothing)",
        "ipv4_lookup(IP_Data, nothing, network)",
        "ipv4_lookup(IP_Data, ip, network, nothing)",
        "ipv4_lookup(IP_Data, ip, strcat(network))",
        "ipv4_lookup(IP_Data, ip, network, return_unmatched = 1)",
        "ipv6_lookup(IP_Data, ip, network, ip)",
        "ipv4_lookup(secrets, ip, network)",
    ],
)
def test_wrong_arguments_of_ip_lookups_are_rejected(endpoint: Endpoint, call: str) -> None:
    """A call with an unknown column or table, or a wrong number of arguments, is rejected."""
    assert endpoint.query_error_code(f"{NETWORKS} IPs | evaluate {call}") == "General_BadRequest"
