"""Tests of the routes, which map topics to connections and devices."""

import pytest
from oi.gateway.routes import Routes, parse_route
from oi.gateway.sections import Section


def build_routes(*routes: dict[str, str]) -> Routes:
    """Build the routes of a configuration."""
    return Routes([parse_route(Section(each)) for each in routes])


@pytest.mark.parametrize(
    ("topic", "address", "matches"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/b/c", False),
        ("a/+", "a/b", True),
        ("a/+", "a/", True),
        ("a/+", "a", False),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("a/#", "ab", False),
        ("#", "a/b", True),
        ("#", "$SYS/uptime", False),
        ("+/b", "$SYS/b", False),
        ("+/b", "a/b", True),
        ("a/+/c", "a/b.x/c", True),
        ("a.b", "axb", False),
    ],
)
def test_topic_filters_match_as_in_mqtt(topic: str, address: str, *, matches: bool) -> None:
    """A topic filter of the gateway matches the same topics as in an MQTT broker."""
    assert (build_routes({"topic": topic, "connection": "press"}).find_target(address) is not None) is matches


def test_named_topic_levels_give_connection_and_device() -> None:
    """Named levels of a topic give the connection's lookup and the device; an invalid lookup matches no route."""
    routes = build_routes({"topic": "{site}/{line}/{unit}/#", "connection": "{site}-{line}", "device": "{unit}:{line}"})
    target = routes.find_target("hall/1/pump/raw")
    assert target is not None
    assert (target.connection, target.device) == ("hall-1", "pump:1")
    assert routes.find_target("hall/ü/pump/raw") is None
    assert routes.find_target("hall//pump") is None
    assert routes.filters == ["+/+/+/#"]


def test_the_first_matching_route_is_used() -> None:
    """The first route that matches a topic is used; overlapping routes have one subscription."""
    routes = build_routes({"topic": "a/b", "connection": "special"}, {"topic": "a/+", "connection": "general"})
    found = [routes.find_target(address) for address in ("a/b", "a/c", "a/b")]
    assert [each and each.connection for each in found] == ["special", "general", "special"]
    assert routes.filters == ["a/+"]


@pytest.mark.parametrize(
    ("wildcard", "broker_topic"),
    [("#", "$SYS/uptime"), ("+/+/+/shadow", "$aws/things/{thing}/shadow"), ("+/things/x/y", "$aws/things/+/y")],
)
def test_wildcards_do_not_cover_topics_of_the_broker(wildcard: str, broker_topic: str) -> None:
    """A topic that begins with `$` has its own subscription, because no wildcard at the first level matches it."""
    routes = [{"topic": topic, "connection": "x"} for topic in (wildcard, broker_topic)]
    expected = {wildcard, broker_topic.replace("{thing}", "+")}
    assert set(build_routes(*routes).filters) == set(build_routes(*reversed(routes)).filters) == expected


def test_the_cache_of_topics_is_limited() -> None:
    """The cache of topics has a maximum size, whatever number of topics occurs."""
    routes = build_routes({"topic": "a/+", "connection": "x"})
    for number in range(10_050):
        routes.find_target(f"a/{number}")
    assert len(routes._targets) <= 10_000
