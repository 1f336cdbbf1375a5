"""Tests of the ports and settings that the command line of the local host accepts."""

import argparse

import pytest

from local.command import _build_parser, _configure_log, _read_port, _read_settings_from_environment
from local.errors import StartError

WRONG_PORTS = ["65536", "99999", "-1", "\N{ARABIC-INDIC DIGIT ONE}", "9" * 5_000, "x"]


@pytest.mark.parametrize("port", WRONG_PORTS)
def test_a_port_that_does_not_exist_is_rejected(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The option `--port` must be a number from 0 to 65535."""
    with pytest.raises(SystemExit, match="2"):
        _build_parser().parse_args([f"--port={port}"])
    assert "argument --port: must be a number from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("port", WRONG_PORTS)
def test_a_port_in_the_environment_that_does_not_exist_is_rejected(port: str) -> None:
    """The environment variable PORT must be a number from 0 to 65535."""
    with pytest.raises(StartError, match="PORT must be a number from 0 to 65535"):
        _read_port(argparse.Namespace(port=None), {"PORT": port})


def test_the_port_of_the_option_has_priority() -> None:
    """The port is that of the option, else that of the environment variable, else 7071."""
    environment = {"PORT": "65535"}
    assert _read_port(_build_parser().parse_args(["--port", "0"]), environment) == 0
    assert _read_port(_build_parser().parse_args([]), environment) == 65_535
    assert _read_port(_build_parser().parse_args([]), {"PORT": ""}) == 7_071


def test_an_invalid_schedule_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason for a failed start names the setting with an invalid schedule and its value."""
    monkeypatch.setenv("VERIFY_SCHEDULE", "@daily")
    with pytest.raises(StartError, match=r"^VERIFY_SCHEDULE '@daily' is not an NCRONTAB expression"):
        _read_settings_from_environment()


def test_an_unknown_log_level_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason for a failed start names the setting with an unknown log level and its value."""
    monkeypatch.setenv("LOG_LEVEL", "Information")
    with pytest.raises(StartError, match=r"^LOG_LEVEL must be DEBUG, INFO, .*, not 'Information'"):
        _configure_log()
