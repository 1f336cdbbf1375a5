"""Tests of the configuration of the gateway: each error names the property and the rule."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from oi.gateway.metrics import Metrics
from oi.gateway.sections import Section, SettingsError
from oi.gateway.settings import ServiceSettings, load_gateway_settings, parse_gateway_settings
from oi.gateway.sources import SourceContext, create_source

from tests.client.gateway.running import DroppingReceiver, EmptyMarkStore, build_configuration


def build_property_change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return a function that changes one property of a configuration."""

    def apply(properties: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        place: Any = properties
        for each in parents:
            place = place[int(each)] if each.isdigit() else place[each]
        place[last] = value

    return apply


def parse_with_source(properties: dict[str, Any]) -> None:
    """Parse a configuration that has a source."""
    settings = parse_gateway_settings(Section(properties))
    create_source(
        settings.source_kind, settings.source, SourceContext([], DroppingReceiver(), EmptyMarkStore(), Metrics())
    )


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "servise",
            {},
            "`servise` is not a known setting; the known settings here are metrics, routes, service, source, spool.",
        ),
        ("service", None, "`service` is missing."),
        ("service.url", "plant.example", "`service.url`: 'plant.example' is not a valid address"),
        ("service.url", "https://plant:abc", "`service.url`: 'https://plant:abc' is not a valid address"),
        ("service.url", "https://[::1", "`service.url`: 'https://[::1' is not a valid address"),
        ("service.url", "http://plant.example", "`service.url`: http://plant.example must begin with https://"),
        ("service.url", "https://a:secret@plant.example", "`service.url`: The address must not contain a user name"),
        ("service.url", "https://plant.example/a", "`service.url` must have no path and no query"),
        ("service.keyfile", "x", "`service.keyfile` is not a known setting; the known settings here are keyFile, url."),
        ("source", [], "source must be an object with properties."),
        ("source.kind", "opcua", "`source.kind` must be one of mqtt."),
        ("source.port", 0, "`source.port` must be an integer between 1 and 65,535."),
        ("source.port", True, "`source.port` must be an integer"),
        ("source.version", 4, "`source.version` must be one of 3.1.1, 5."),
        ("source.qos", 2, "`source.qos` must be one of 0, 1."),
        ("source.clientId", "", "`source.clientId` must be a text that is not empty."),
        ("source.clientId", 12, "`source.clientId` must be a text; put its value in quotes."),
        ("source.clientId", date(2026, 1, 5), "`source.clientId` must be a text; put its value in quotes."),
        ("source.clientId", ["a"], "`source.clientId` must be a text that is not empty."),
        ("source.user", "x", "`source.user` is not a known setting"),
        ("source.passwordFile", "x", "`source.passwordFile` requires the setting `username`."),
        ("source.sharedGroup", "a/b", "`source.sharedGroup` must have none of the characters"),
        ("source.tls", {"keyFile": "x"}, "`source.tls.certificateFile` and `source.tls.keyFile` must be set together."),
        ("routes", [], "`routes` must be a list with at least one element."),
        (
            "routes.0.topic",
            "a/b+",
            "`routes[0].topic`: `+`, `#` and a name in braces must each be a whole level of the topic.",
        ),
        ("routes.0.topic", "#/a", "`routes[0].topic`: `#` must be the last level of the topic."),
        ("routes.0.topic", "$share/g/a", "for a shared subscription set `source.sharedGroup`."),
        ("routes.0.topic", "{line}/{line}", "each name in braces, such as {line}, may occur only once."),
        (
            "routes.0.connection",
            "{place}",
            "`routes[0].connection` uses the placeholder {place}, but the topic has no level {place}; add it",
        ),
        ("routes.0.connection", "a b", "`routes[0].connection` must be the lookup (short name) of a connection"),
        (
            "routes.0.deviceIdPointer",
            "/d",
            "`routes[0].device` and `deviceIdPointer` cannot both be set; remove one of them.",
        ),
        ("routes.0.timestampPointer", "time", "`routes[0].timestampPointer` must be a JSON pointer"),
        ("routes.0.timestampFormat", "iso", "`routes[0].timestampFormat` must be one of rfc3339, epochSeconds"),
        ("routes.0.retain", True, "`routes[0].retain` is not a known setting"),
        ("spool.maxSize", "10 GB", "`spool.maxSize` must be a size of at least 1MiB, such as 10GiB."),
        ("spool.maxSize", 10, "`spool.maxSize` must be a size of at least 1MiB, such as 10GiB."),
        ("spool.whenFull", "drop", "`spool.whenFull` must be one of stop, dropOldest."),
        ("metrics.port", -1, "`metrics.port` must be an integer between 0 and 65,535."),
    ],
)
def test_the_error_about_a_configuration_names_the_invalid_property(
    tmp_path: Path, path: str, value: Any, message: str
) -> None:
    """The message about an invalid configuration names the property and the rule."""
    properties = build_configuration(tmp_path, 1883, "x")
    build_property_change(path, value)(properties)
    with pytest.raises(SettingsError) as raised:
        parse_with_source(properties)
    assert message in str(raised.value)


def test_overlapping_topic_filters_are_rejected(tmp_path: Path) -> None:
    """Two filters that overlap are rejected, because a broker can deliver a message twice."""
    properties = build_configuration(tmp_path, 1883, "x")
    properties["routes"] = [{"topic": topic, "connection": "a"} for topic in ("a/+/c", "a/b/+")]
    with pytest.raises(SettingsError, match="overlap"):
        parse_with_source(properties)


def test_the_gateway_reads_its_configuration_file(tmp_path: Path) -> None:
    """The gateway reads its configuration from a file; properties that the file omits have the documented defaults."""
    path = tmp_path / "gateway.yaml"
    path.write_text(
        "service: {url: 'https://plant.example/', keyFile: key}\n"
        "source: {kind: mqtt, host: broker, clientId: gw, tls: {}}\n"
        "routes: [{topic: 'plant/#', connection: press}]\n"
        "spool: {path: spool.db, maxSize: 2GiB}\n"
    )
    settings = load_gateway_settings(path)
    assert settings.service == ServiceSettings("https://plant.example", Path("key"))
    assert (settings.spool.max_bytes, settings.spool.when_full, settings.metrics_port) == (2 * 2**30, "stop", 9108)
    assert settings.routes.filters == ["plant/#"]


def test_the_size_of_the_spool_can_be_a_number_of_bytes(tmp_path: Path) -> None:
    """A size without a unit is a number of bytes, although YAML reads it as a number."""
    properties = build_configuration(tmp_path, 1883, "x")
    build_property_change("spool.maxSize", 10_737_418_240)(properties)
    assert parse_gateway_settings(Section(properties)).spool.max_bytes == 10 * 2**30


@pytest.mark.parametrize("text", ["a: [", "- 1", "\tx"])
def test_a_file_without_a_configuration_object_is_rejected(tmp_path: Path, text: str) -> None:
    """A file that is not YAML or not an object is rejected as an invalid configuration."""
    (tmp_path / "gateway.yaml").write_text(text)
    with pytest.raises(SettingsError):
        load_gateway_settings(tmp_path / "gateway.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("routes:\n- topic: a\nspool: {}\nroutes:\n- topic: b\n", "Line 4 repeats the property `routes` of line 1;"),
        ("service: {url: a, url: b}", "Line 1 repeats the property `url` of line 1;"),
    ],
)
def test_a_repeated_property_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    """A property that occurs twice in an object is rejected; otherwise, the first of two `routes` would be ignored."""
    (tmp_path / "gateway.yaml").write_text(text)
    with pytest.raises(SettingsError, match=message):
        load_gateway_settings(tmp_path / "gateway.yaml")


def test_the_api_key_is_read_from_its_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API key is read from the key file or, without a file, from the environment variable.

    Without both it is an error.
    """
    (tmp_path / "key").write_text("oik_1\n")
    monkeypatch.setenv("OI_KEY", "oik_2")
    assert ServiceSettings("https://x", tmp_path / "key").read_api_key() == "oik_1"
    (tmp_path / "key").write_text("oik_1\r\n", encoding="utf-8-sig")
    assert ServiceSettings("https://x", tmp_path / "key").read_api_key() == "oik_1"
    assert ServiceSettings("https://x", None).read_api_key() == "oik_2"
    monkeypatch.delenv("OI_KEY")
    (tmp_path / "key").write_text("")
    for settings in (ServiceSettings("https://x", each) for each in (None, tmp_path / "key", tmp_path / "none")):
        with pytest.raises(SettingsError, match="API key"):
            settings.read_api_key()


@pytest.mark.parametrize("key", ["oik_secret\nsecond", "oik_secr\u00e9t", "key: oik_secret"])
def test_the_error_about_an_invalid_key_file_does_not_contain_its_content(tmp_path: Path, key: str) -> None:
    """The error about an invalid key file contains its name but not its content, because errors are logged."""
    (tmp_path / "key").write_text(key, encoding="utf-8")
    with pytest.raises(SettingsError, match="does not contain an API key") as refused:
        ServiceSettings("https://x", tmp_path / "key").read_api_key()
    assert str(tmp_path / "key") in str(refused.value)
    assert "secr" not in str(refused.value)
