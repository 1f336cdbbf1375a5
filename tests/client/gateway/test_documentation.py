"""Tests that the gateway's guide is complete."""

import re
from pathlib import Path

import pytest
import yaml
from oi.gateway import metrics
from oi.gateway.sections import Section
from oi.gateway.settings import parse_gateway_settings
from oi.gateway.sources.mqtt_settings import parse_mqtt_settings

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "connect-a-plant.md").read_text(encoding="utf-8")


def test_the_example_configuration_is_valid_and_each_property_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example configuration in the guide is valid, and the guide's table describes each of its properties."""
    members: set[str] = set()
    check_all_properties_read = Section.check_all_properties_read

    def record_section(section: Section) -> None:
        place = re.sub(r"\[\d+\]", "[]", section._place)
        members.update(f"{place}.{name}" for name in section._read if place)
        check_all_properties_read(section)

    monkeypatch.setattr(Section, "check_all_properties_read", record_section)
    [example] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    settings = parse_gateway_settings(Section(yaml.safe_load(example)))
    parse_mqtt_settings(settings.source)
    assert sorted(name for name in members - {"source.tls"} if f"`{name}`" not in PAGE) == []
    assert settings.routes.filters == ["hall-1/+/+/data", "meters/#"]


def test_the_guide_names_every_metric_of_the_gateway() -> None:
    """The guide names each metric of the gateway."""
    names = [f"{metrics.PREFIX}{name}" for name in (*metrics._COUNTERS, *metrics._GAUGES)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_systemd_unit_runs_the_command_of_the_guide() -> None:
    """The systemd unit runs the program and uses the configuration file that the guide installs."""
    unit = (ROOT / "client" / "systemd" / "oi-gateway.service").read_text(encoding="utf-8")
    [command] = re.findall(r"^ExecStart=(\S+) gateway run (\S+)$", unit, re.MULTILINE)
    assert all(part in PAGE for part in command)
    assert "StateDirectory=oi-gateway" in unit
    assert "/var/lib/oi-gateway/" in PAGE
