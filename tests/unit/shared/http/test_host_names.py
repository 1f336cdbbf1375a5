"""Which hosts are ours."""

import json

import pytest

from shared.http.host_names import is_allowed_host, misdirected_reply

HOSTS = ("127.0.0.1", "127.0.0.1:*", "[::1]:*", "plant.example", "plant.example:8443")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:1", "127.0.0.1:65535", "[::1]:7071", "plant.example", "plant.example:8443"]
)
def test_a_listed_host_is_taken(host: str) -> None:
    """A name is taken as it stands, and with any port where the list says so."""
    assert is_allowed_host(host, HOSTS)


@pytest.mark.parametrize(
    "host",
    [
        *("", ":", ":80", "*", "127.0.0.1:", "127.0.0.1:*", "127.0.0.1:x", "127.0.0.1:80/x", "127.0.0.1:123456"),
        *("[::1]", "plant.example:80", "x.plant.example", "plant.example.x", "127.0.0.1:1:1", "127.0.0.1:\u0661"),
    ],
)
def test_nothing_else_is_taken(host: str) -> None:
    """What is longer, shorter, or has a port that is none, is another host."""
    assert not is_allowed_host(host, HOSTS)


def test_the_refusal_is_a_problem_document() -> None:
    """A host that is not ours is told 421 under the request's id."""
    reply = misdirected_reply("id")
    document = json.loads(reply.body)
    assert (reply.status, document["status"], document["code"]) == (421, 421, "PROTOCOL_REFUSED")
    assert document["traceId"] == "id"
