"""Tests of the check of the Host header."""

import json

import pytest

from functions.public_address import build_misdirected_reply, is_allowed_host

HOSTS = ("127.0.0.1", "127.0.0.1:*", "[::1]:*", "plant.example", "plant.example:8443")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:1", "127.0.0.1:65535", "[::1]:7071", "plant.example", "plant.example:8443"]
)
def test_a_listed_host_is_accepted(host: str) -> None:
    """A Host header that equals a list entry is accepted; an entry ending with ``:*`` allows any port."""
    assert is_allowed_host(host, HOSTS)


@pytest.mark.parametrize(
    "host",
    [
        *("", ":", ":80", "*", "127.0.0.1:", "127.0.0.1:*", "127.0.0.1:x", "127.0.0.1:80/x", "127.0.0.1:123456"),
        *("[::1]", "plant.example:80", "x.plant.example", "plant.example.x", "127.0.0.1:1:1", "127.0.0.1:\u0661"),
    ],
)
def test_unlisted_hosts_are_rejected(host: str) -> None:
    """A Host header with a longer or shorter name or an invalid port is rejected."""
    assert not is_allowed_host(host, HOSTS)


def test_an_unknown_host_gets_a_problem_document() -> None:
    """An unknown Host header gets a 421 reply with the request id."""
    reply = build_misdirected_reply("id")
    document = json.loads(reply.body)
    assert (reply.status, document["status"], document["code"]) == (421, 421, "PROTOCOL_REFUSED")
    assert document["traceId"] == "id"
