"""Tests of the rules for addresses that users choose."""

from ipaddress import ip_address

import pytest

from shared.outbound.addresses import (
    AddressRefusedError,
    AddressRules,
    is_public_address,
    parse_addresses,
    parse_networks,
    parse_outbound_url,
)

LOOPBACK = AddressRules(parse_networks("127.0.0.0/8, ::1/128"), frozenset({7071}))


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://hooks.example/a/secret?x=1", "https://hooks.example:443"),
        ("https://Hooks.Example:8443", "https://hooks.example:8443"),
        ("https://8.8.8.8/x", "https://8.8.8.8:443"),
        ("https://[2606:4700::1111]:1024/", "https://[2606:4700::1111]:1024"),
        ("HTTP://localhost:9000/x", "http://localhost:9000"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example:443"),
        ("https://_service.host-1.example/", "https://_service.host-1.example:443"),
    ],
)
def test_an_outbound_url_is_parsed_to_its_origin(text: str, origin: str) -> None:
    """The origin of a URL has its scheme, host in lower case and port, but no path or query."""
    url = parse_outbound_url(text)
    assert (url.text, url.origin) == (text, origin)
    assert len(url.digest) == 64


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "visible ASCII"),
        ("https://hooks.example/a b", "visible ASCII"),
        ("https://hooks.example/\n", "visible ASCII"),
        ("https://bücher.example/", "visible ASCII"),
        ("https://hooks.example\\@127.0.0.1/", "visible ASCII"),
        ("https://hooks.example/" + "a" * 2048, "2048"),
        ("ftp://hooks.example/", "must begin with `https://`, or in an allowed network with `http://`"),
        ("//hooks.example/", "https"),
        ("file:///etc/passwd", "https"),
        ("https://user:secret@hooks.example/", "password"),
        ("https://@hooks.example/", "password"),
        ("https://hooks.example/#part", "fragment"),
        ("https://hooks.example:22/", "port"),
        ("https://hooks.example:1023/", "port"),
        ("https://hooks.example:0/", "port"),
        ("https://hooks.example:65536/", "host and port"),
        ("https://hooks.example:x/", "host and port"),
        ("http://hooks.example/", "port"),
        ("https:///path", "host and port"),
        ("https://.example/", "host name"),
        ("https://hooks..example/", "host name"),
        ("https://hooks.example./", "host name"),
        ("https://%31%32%37.0.0.1/", "host"),
        ("https://2130706433/", "four decimal"),
        ("https://017700000001/", "four decimal"),
        ("https://0x7f000001/", "four decimal"),
        ("https://0177.0.0.1/", "four decimal"),
        ("https://0x7f.0.0.1/", "four decimal"),
        ("https://127.0.0.0x1/", "four decimal"),
        ("https://127.1/", "four decimal"),
        ("https://1.2.3.4.5/", "four decimal"),
        ("https://[::1%25eth0]/", "host and port"),
        ("https://[:::1]/", "host and port"),
        ("https://hooks.example:/", "host and port"),
        ("https://[127.0.0.1]/", "host"),
        ("https://[::1]x/", "host"),
        ("https://" + "a" * 64 + ".example/", "host name"),
    ],
)
def test_a_url_that_breaks_a_rule_is_refused(text: str, rule: str) -> None:
    """A URL is rejected for credentials, a forbidden scheme or port, or an unusual host; the error names the rule."""
    with pytest.raises(AddressRefusedError, match=rule) as refused:
        parse_outbound_url(text)
    assert "secret" not in refused.value.reason


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001::1"])
def test_a_public_address_is_accepted(address: str) -> None:
    """A global unicast address is accepted, because it is public."""
    assert is_public_address(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.1.1",
        "169.254.169.254",
        "168.63.129.16",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::8.8.8.8",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_an_internal_address_is_rejected(address: str) -> None:
    """A private, local or special address, or one that contains an IPv4 address, is rejected as not public."""
    assert not is_public_address(ip_address(address))
    url = parse_outbound_url("https://hooks.example/")
    with pytest.raises(AddressRefusedError, match="not public"):
        AddressRules().require_allowed_addresses(url, parse_addresses(["8.8.8.8", address]))


def test_every_address_of_a_host_is_checked() -> None:
    """A host is rejected if any of its IP addresses is internal, or if it has no IP address."""
    url = parse_outbound_url("https://hooks.example/")
    AddressRules().require_allowed_addresses(url, parse_addresses(["8.8.8.8", "2606:4700::1111"]))
    for addresses in (["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"], []):
        with pytest.raises(AddressRefusedError):
            AddressRules().require_allowed_addresses(url, parse_addresses(addresses))


def test_allowed_networks_admit_internal_addresses_and_plain_http() -> None:
    """An address in an allowed network is accepted, also with plain http unless the caller requires https."""
    local = parse_outbound_url("http://localhost:9000/")
    LOOPBACK.require_allowed_addresses(local, parse_addresses(["127.0.0.1", "::1"]))
    for rules, addresses in ((LOOPBACK, ["10.0.0.1"]), (AddressRules(), ["127.0.0.1"]), (LOOPBACK, ["8.8.8.8"])):
        with pytest.raises(AddressRefusedError):
            rules.require_allowed_addresses(local, parse_addresses(addresses))
    with pytest.raises(AddressRefusedError, match="https"):
        LOOPBACK.require_allowed_addresses(local, parse_addresses(["127.0.0.1"]), https_only=True)


@pytest.mark.parametrize("address", ["::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"])
def test_an_embedded_address_of_an_allowed_network_is_refused(address: str) -> None:
    """An IPv6 address that contains an allowed IPv4 address is rejected."""
    with pytest.raises(AddressRefusedError):
        LOOPBACK.require_allowed_addresses(parse_outbound_url("https://hooks.example/"), parse_addresses([address]))


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "168.63.129.16",
        "fd00:ec2::23",
        "fd00:ec2::254",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:2:3:4:a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "2001:0:4136:e378:8000:63bf:5601:5601",
    ],
)
def test_no_setting_admits_metadata_addresses(address: str) -> None:
    """Metadata addresses of clouds are rejected in every form, even in an allowed network."""
    rules = AddressRules(parse_networks("0.0.0.0/0,::/0"))
    with pytest.raises(AddressRefusedError):
        rules.require_allowed_addresses(parse_outbound_url("https://hooks.example/"), parse_addresses([address]))


@pytest.mark.parametrize("address", ["::", "::1", "::8.8.8.8", "64:ff9b:1::1", "2001:0:4136:e378:8000:63bf:f7f7:f7f7"])
def test_allowed_networks_admit_addresses_that_embed_others(address: str) -> None:
    """An IPv6 address in an allowed network is accepted, unless it contains a metadata address."""
    rules = AddressRules(parse_networks("::/0"))
    rules.require_allowed_addresses(parse_outbound_url("https://hooks.example/"), parse_addresses([address]))


def test_ports_of_this_service_are_rejected_at_internal_addresses() -> None:
    """A URL with a port of this service is rejected at internal addresses and accepted at public addresses."""
    url = parse_outbound_url("https://hooks.example:7071/")
    with pytest.raises(AddressRefusedError, match="7071"):
        LOOPBACK.require_allowed_addresses(url, parse_addresses(["127.0.0.1"]))
    LOOPBACK.require_allowed_addresses(url, parse_addresses(["8.8.8.8"]))


def test_allowed_networks_are_parsed() -> None:
    """Networks are parsed from a list with commas; addresses with host bits and other texts are rejected."""
    assert [str(network) for network in parse_networks(" 10.0.0.0/8,fd00::/8 ,")] == ["10.0.0.0/8", "fd00::/8"]
    for text in ("10.0.0.1/8", "internal", "10.0.0.0/40"):
        with pytest.raises(ValueError, match=r"\S"):
            parse_networks(text)
