"""The static checks of the templates see every file, resource and rule."""

import json
import re
from pathlib import Path

import pytest

from scripts import bicep_properties, bicep_scan, bicep_versions
from tests.infra.bicep_syntax import parse
from tests.infra.templates import BICEP, Template, Templates

OFF = {
    "use-recent-api-versions",
    *(f"use-description-{n}" for n in ["outputs", "params", "type-properties", "types", "vars"]),
}
WIDTH = 200
OLDEST = {"Microsoft.Insights/diagnosticSettings": "2021-05-01-preview", "Microsoft.Authorization/locks": "2020-05-01"}
UNCHANGED = {
    "Microsoft.Authorization/roleAssignments": "2022-04-01",
    "Microsoft.Devices/IotHubs": "2023-06-30",
    "Microsoft.Insights/actionGroups": "2023-01-01",
    "Microsoft.Insights/components": "2020-02-02",
    "Microsoft.SignalRService/webPubSub": "2024-03-01",
    "Microsoft.SignalRService/webPubSub/hubs": "2024-03-01",
} | OLDEST
"""The newest versions of types that have no version of the last two years."""


def test_scan_sees_every_resource() -> None:
    """The scanned deployments together create every resource that a template declares."""
    assert bicep_scan.find_missing_resources(bicep_scan.evaluate_deployments()) == set()


def test_scan_misses_a_resource_that_no_deployment_creates() -> None:
    """A resource that only another situation creates is named."""
    created = {name: each for name, each in bicep_scan.evaluate_deployments().items() if name != "failed-over"}
    assert bicep_scan.find_missing_resources(created) == {"main.networkGroup"}


def test_scanned_values_are_plain() -> None:
    """The scanner reads JSON: a value of run time is a text, and names are distinct."""
    arm = bicep_scan.to_arm_template(bicep_scan.evaluate_deployments()["everything"])
    assert "known at run time" in json.dumps(arm)
    names = [(each["type"], each["name"]) for each in arm["resources"]]
    assert len(names) == len(set(names))


def test_every_type_has_its_definition() -> None:
    """An unknown type is an error; the comparisons never skip it."""
    targets = [each.target for template in Templates().all for each in template.file.of_kind("resource").values()]
    assert {each.partition("@")[0] for each in targets} == set(bicep_versions.MODULES)
    assert {each.partition("/")[0] for each in targets} == set(bicep_properties.FOLDERS)
    with pytest.raises(KeyError, match=r"Microsoft\.Quantum"):
        bicep_properties._read_property_names(Path(), "Microsoft.Quantum")


def test_properties_are_seen_in_every_branch(tmp_path: Path) -> None:
    """A ternary, a loop, a function and a variable hide no property from the comparison."""
    path = tmp_path / "main.bicep"
    path.write_text(
        "var inner = {\n  a: 1\n}\nvar all = b ? union(inner, { c: [for i in x: { d: 1 }] }) : {}\n", encoding="utf-8"
    )
    source = Template(path)
    value = parse(path).of_kind("var")["all"].value
    assert value is not None
    assert sorted(source.member_names(value)) == ["a", "c", "d"]


def test_configuration_makes_every_rule_an_error() -> None:
    """Every rule is an error, except disabled rules with a reason."""
    text = (BICEP / "bicepconfig.json").read_text(encoding="utf-8")
    config = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    levels = {name: each["level"] for name, each in config["analyzers"]["core"]["rules"].items()}
    assert {name for name, level in levels.items() if level == "off"} == OFF
    assert {level for name, level in levels.items() if name not in OFF} == {"error"}
    assert config["formatting"]["width"] == WIDTH


@pytest.mark.parametrize("template", Templates().all, ids=lambda template: template.path.stem)
def test_templates_are_formatted(template: Template) -> None:
    """The templates follow the formatter's rules for line width and loops."""
    assert [line for line in template.text.splitlines() if len(line) > WIDTH] == []
    assert not re.search(r"\[for .*\{$", template.text, re.MULTILINE)
    assert not re.search(r"[ \t]$", template.text, re.MULTILINE)


@pytest.mark.parametrize("template", Templates().all, ids=lambda template: template.path.stem)
def test_constructs_that_warn_are_not_used(template: Template) -> None:
    """Modules have no name, parameters no untyped objects, and silenced warnings a reason."""
    for each in template.file.of_kind("module").values():
        assert not re.search(rf"^module {each.name} .*\n(  scope.*\n)?  name:", template.text, re.MULTILINE), each.name
    assert not re.search(r"^param \w+ (object|array)\b", template.text, re.MULTILINE)
    lines = template.text.splitlines()
    for index, line in enumerate(lines):
        assert "#disable" not in line or lines[index - 1].strip().startswith("//"), line


def test_versions_are_recent() -> None:
    """Each type has a version of the two years before it was chosen, or the newest one that there is."""
    for template in Templates().all:
        for each in template.file.of_kind("resource").values():
            kind, _, version = each.target.partition("@")
            assert version == UNCHANGED[kind] if kind in UNCHANGED else version >= "2024-06-01", each.target


def test_outbound_is_explicit_before_networks_lose_it() -> None:
    """Networks of API version 2026-03-31 or later have no default outbound access; subnets say so already."""
    network = Templates().named("network")
    assert network.text.count("defaultOutboundAccess: false") == 2
    assert "natGateways@" in network.text
