"""Tests of the gateway's commands: exit codes and messages."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from oi.cli import gateway as commands
from oi.cli.main import execute
from oi.gateway.check import _MessagePrinter
from oi.gateway.deliveries import Delivery
from oi.gateway.sections import Section
from oi.gateway.settings import STOP, SpoolSettings, parse_gateway_settings
from oi.gateway.spool import GatewaySpool, RejectedMessage

from shared.errors import WorkspaceError
from shared.telemetry.layout import DEFAULT_LAYOUT
from shared.telemetry.message_parser import parse_messages
from tests.client.gateway.broker import Broker
from tests.client.gateway.running import build_configuration, encode_message

TOKEN = {"Token": "t", "ExpiresAt": "2999-01-01T00:00:00+00:00"}


@pytest.fixture
def key_reply(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the fake service's reply about the API key.

    If a test adds the entry ``status``, the reply is an error with this status.
    """
    known: dict[str, Any] = {"accessRights": ["Workspace.Telemetry.Write"], "connections": ["press"]}

    def reply_to_request(request: httpx.Request) -> httpx.Response:
        if "status" in known:
            return httpx.Response(known["status"], json={"code": "KEY_REVOKED", "detail": "The key was revoked."})
        return httpx.Response(200, json=TOKEN if request.url.path.endswith("/jwt") else known)

    client = httpx.AsyncClient

    def connect(**options: Any) -> httpx.AsyncClient:
        return client(transport=httpx.MockTransport(reply_to_request), **options)

    monkeypatch.setattr(httpx, "AsyncClient", connect)
    monkeypatch.setenv("OI_KEY", "oik_1")
    return known


def write_configuration(folder: Path, port: int, name: str, **source: Any) -> str:
    """Write a gateway configuration and return its path."""
    path = folder / "gateway.yaml"
    path.write_text(yaml.safe_dump(build_configuration(folder, port, name, **source)))
    return str(path)


def test_check_without_messages_prints_the_topic_filters(
    tmp_path: Path, shared_broker: Broker, key_reply: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """If no message arrives, `check` prints the topic filters and succeeds if key and broker are valid."""
    path = write_configuration(tmp_path, shared_broker.port, "shown")
    assert execute(["gateway", "check", path, "--seconds", "1"]) == 0
    output = capsys.readouterr().out
    assert "accepts the key.\nThe key is bound to the connections press.\n" in output
    assert "No message arrived within 1 seconds on shown/+/+." in output


def test_check_reports_connections_to_which_the_key_is_not_bound(
    tmp_path: Path, key_reply: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` fails if a route or message leads to a connection to which the key is not bound."""
    key_reply["connections"] = ["lathe"]
    settings = build_configuration(tmp_path, 1883, "x")
    shown: list[str] = []
    display = _MessagePrinter(parse_gateway_settings(Section(settings)), key_reply, 1, shown.append)
    display.accept_delivery(Delivery("x/press/d-1", encode_message(value=1)))
    assert "rejected: The API key is not bound to the connection press;" in shown[0]
    settings["routes"] = [{"topic": "a/{device}", "connection": "press", "device": "{device}"}]
    path = tmp_path / "gateway.yaml"
    path.write_text(yaml.safe_dump(settings))
    execute(["gateway", "check", str(path), "--seconds", "1"])
    assert (
        "The key is not bound to press, which `routes` name: their messages cannot be sent.\n"
        in capsys.readouterr().out
    )


def test_check_reports_devices_to_which_the_key_is_not_bound(tmp_path: Path) -> None:
    """`check` marks a message as rejected if the key is not bound to its device."""
    shown: list[str] = []
    settings = build_configuration(tmp_path, 1883, "x")
    settings["routes"] = [
        {"topic": "x/{device}", "connection": "press", "device": "{device}"},
        {"topic": "y", "connection": "press"},
    ]
    bound = {"connections": ["press"], "devices": ["d-*"]}
    display = _MessagePrinter(parse_gateway_settings(Section(settings)), bound, 5, shown.append)
    for address, payload in (
        ("x/d-1", encode_message(value=1)),
        ("x/e-1", encode_message(value=1)),
        ("y", encode_message(value=1)),
        ("y", encode_message(deviceId="d-2")),
    ):
        display.accept_delivery(Delivery(address, payload))
    assert ["rejected: The API key is bound to other devices" in each for each in shown] == [False, True, True, False]
    assert display.rejected == 2


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            {"deviceId": 7},
            (
                "The deviceId must be a string of 1 to 256 characters. Set `deviceIdPointer: /deviceId` in the route "
                "to send integers as strings. Without it, the service accepts integers only if the connection states"
            ),
        ),
        ({"deviceId": None}, "The deviceId must be a string"),
        ({"messageId": ""}, "The messageId must be a string"),
        ({"messageId": "x" * 257}, "The messageId must be a string"),
        ({"timestamp": "yesterday"}, "The timestamp is invalid: an RFC 3339 date-time such as"),
        ({"timestamp": 1767600000}, "The timestamp is invalid: an RFC 3339 date-time such as"),
    ],
)
def test_check_reports_metadata_that_the_service_rejects(tmp_path: Path, message: dict[str, Any], reason: str) -> None:
    """`check` marks a message as rejected if the service rejects its id, its device id or its time."""
    shown: list[str] = []
    settings = build_configuration(tmp_path, 1883, "x")
    settings["routes"] = [{"topic": "y", "connection": "press"}]
    display = _MessagePrinter(parse_gateway_settings(Section(settings)), {}, 5, shown.append)
    display.accept_delivery(Delivery("y", encode_message(**message)))
    assert f"rejected: {reason}" in shown[0]
    assert display.rejected == 1
    with pytest.raises(WorkspaceError):
        parse_messages(message, DEFAULT_LAYOUT)


def test_check_shows_converted_messages(tmp_path: Path) -> None:
    """`check` shows each converted message, or why it cannot be sent, and ends after the given number of messages."""
    shown: list[str] = []
    settings = parse_gateway_settings(Section(build_configuration(tmp_path, 1883, "x")))
    display = _MessagePrinter(settings, {}, 3, shown.append)
    for address, payload in (
        ("x/press/d-1", encode_message(value=1)),
        ("x/press/d-1", b"?"),
        ("y", b"{}"),
        ("y", b"{}"),
    ):
        display.accept_delivery(Delivery(address, payload))
    assert "→ press" in shown[0]
    assert '"deviceId":"d-1","messageId":"new-id"' in shown[0]
    assert [
        "rejected: The message is not valid JSON: a value is expected at column 1" in shown[1],
        "rejected: No route" in shown[2],
    ] == [True, True]
    assert (len(shown), display.rejected, display.finished.is_set()) == (3, 2, True)


@pytest.mark.parametrize(
    ("known", "code", "text"),
    [
        ({"status": 401}, 1, "The key was revoked."),
        ({"accessRights": []}, 1, "lacks the right Workspace.Telemetry.Write"),
        ({"connections": None}, 0, "not bound to connections"),
    ],
)
def test_check_reports_missing_and_superfluous_rights_of_the_key(
    tmp_path: Path,
    shared_broker: Broker,
    key_reply: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    known: dict[str, Any],
    code: int,
    text: str,
) -> None:
    """`check` fails if the key cannot send telemetry, and lists rights that the key does not need."""
    key_reply.update(known)
    path = write_configuration(tmp_path, shared_broker.port, "key")
    assert execute(["gateway", "check", path, "--seconds", "1"]) == code
    printed = capsys.readouterr()
    assert text in printed.out + printed.err


def test_check_names_the_address_of_an_unreachable_broker(
    tmp_path: Path, key_reply: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """If the broker is unreachable, the error of `check` names the broker's address."""
    assert execute(["gateway", "check", write_configuration(tmp_path, 1, "none")]) == 1
    assert "The broker 127.0.0.1:1 cannot be reached" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["run", "check", "rejected"])
def test_an_invalid_configuration_property_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    """The error about an invalid configuration names the file and the invalid property."""
    (tmp_path / "gateway.yaml").write_text("service: {}")
    assert execute(["gateway", verb, str(tmp_path / "gateway.yaml")]) == 2
    assert "`service.url` is missing." in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["run", "check"])
def test_an_invalid_source_in_the_configuration_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key_reply: dict[str, Any], verb: str
) -> None:
    """An invalid source in the configuration is rejected before the gateway connects."""
    assert execute(["gateway", verb, write_configuration(tmp_path, 1883, "x", qos=3)]) == 2
    assert "`source.qos` must be one of 0, 1." in capsys.readouterr().err


def test_run_rejects_a_spool_that_another_gateway_uses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If a gateway already uses a spool file, a second gateway with the same file ends with an error.

    The spool is the file of waiting messages.
    """
    spool = GatewaySpool(SpoolSettings(tmp_path / "x.db", 2**20, STOP))
    assert execute(["gateway", "run", write_configuration(tmp_path, 1, "x")]) == 1
    assert "in use by another gateway" in capsys.readouterr().err
    spool.close()


def test_a_missing_optional_package_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the optional package ``mqtt`` is missing, the error message states how to install it."""
    monkeypatch.setattr(commands, "find_spec", lambda name: None if name == "paho" else object())
    assert execute(["gateway", "run", write_configuration(tmp_path, 1, "x")]) == 2
    assert "The gateway needs paho-mqtt. Install the client with its extra `mqtt`" in capsys.readouterr().err


def test_the_command_rejected_prints_rejected_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command `rejected` prints the topic or connection, the reason and the content of each rejected message."""
    path = write_configuration(tmp_path, 1, "x")
    assert execute(["gateway", "rejected", path]) == 1
    assert "does not exist" in capsys.readouterr().err
    spool = GatewaySpool(SpoolSettings(tmp_path / "x.db", 2**30, STOP))
    spool.append_and_count_dropped({}, [RejectedMessage("a/b", None, "not_json", "No.", b"\xff")], b"")
    spool.append_and_count_dropped({}, [RejectedMessage("", "press", "service", "Old.", encode_message(value=1))], b"")
    spool.close()
    assert execute(["gateway", "rejected", path, "--limit", "1"]) == 0
    assert 'connection press  service: Old.  {"value": 1}' in capsys.readouterr().out
    assert execute(["gateway", "rejected", path, "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["topic"] for each in shown] == ["", "a/b"]
    assert shown[1]["message"] == "\ufffd"


def test_rejected_messages_do_not_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters in a rejected message are escaped as text; in JSON output they are escaped as JSON."""
    path = write_configuration(tmp_path, 1, "x")
    spool = GatewaySpool(SpoolSettings(tmp_path / "x.db", 2**30, STOP))
    spool.append_and_count_dropped(
        {}, [RejectedMessage("a\x1b]0;", None, "not_json", "No.", "\x1b[2J\u009b\n\u202e".encode())], b""
    )
    spool.close()
    assert execute(["gateway", "rejected", path]) == 0
    assert r"a\x1b]0;  not_json: No.  \x1b[2J\x9b\n\u202e" in capsys.readouterr().out
    assert execute(["gateway", "rejected", path, "--json"]) == 0
    printed = capsys.readouterr().out
    assert printed[:-1].isascii()
    assert printed[:-1].isprintable()
    assert json.loads(printed)["message"] == "\x1b[2J\u009b\n\u202e"
