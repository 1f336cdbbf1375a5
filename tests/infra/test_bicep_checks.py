"""Tests that the static checks of the templates cover every file, resource and rule."""

import json
import re

import pytest

from tests.infra.templates import BICEP, Template, Templates

OFF = {
    "use-recent-api-versions",
    *(f"use-description-{n}" for n in ["outputs", "params", "type-properties", "types", "vars"]),
}
WIDTH = 200


def test_every_lint_rule_is_an_error() -> None:
    """Each lint rule has the level error, except the rules that are disabled with a reason."""
    text = (BICEP / "bicepconfig.json").read_text(encoding="utf-8")
    config = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    levels = {name: each["level"] for name, each in config["analyzers"]["core"]["rules"].items()}
    assert {name for name, level in levels.items() if level == "off"} == OFF
    assert {level for name, level in levels.items() if name not in OFF} == {"error"}
    assert config["formatting"]["width"] == WIDTH


@pytest.mark.parametrize("template", Templates().all, ids=lambda template: template.path.stem)
def test_templates_follow_the_rules_of_the_formatter(template: Template) -> None:
    """Line widths and loops in the templates follow the rules of Bicep's formatter."""
    assert [line for line in template.text.splitlines() if len(line) > WIDTH] == []
    assert not re.search(r"\[for .*\{$", template.text, re.MULTILINE)
    assert not re.search(r"[ \t]$", template.text, re.MULTILINE)


@pytest.mark.parametrize("template", Templates().all, ids=lambda template: template.path.stem)
def test_templates_use_no_constructs_that_cause_warnings(template: Template) -> None:
    """No module has a name, no parameter is an untyped object, and each disabled warning has a reason."""
    for each in template.file.find_declarations("module").values():
        assert not re.search(rf"^module {each.name} .*\n(  scope.*\n)?  name:", template.text, re.MULTILINE), each.name
    assert not re.search(r"^param \w+ (object|array)\b", template.text, re.MULTILINE)
    lines = template.text.splitlines()
    for index, line in enumerate(lines):
        assert "#disable" not in line or lines[index - 1].strip().startswith("//"), line
