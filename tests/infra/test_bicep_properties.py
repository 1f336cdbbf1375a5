"""Tests that the check of the templates' properties covers every type and branch."""

from pathlib import Path

import pytest

from scripts import bicep_properties, bicep_versions
from tests.infra.bicep_syntax import parse_file
from tests.infra.templates import Template, Templates


def test_every_resource_type_has_a_definition_of_its_properties() -> None:
    """Each resource type in the templates has a definition; an unknown type raises an error."""
    targets = [
        each.target for template in Templates().all for each in template.file.find_declarations("resource").values()
    ]
    assert {each.partition("@")[0] for each in targets} == set(bicep_versions.MODULES)
    assert {each.partition("/")[0] for each in targets} == set(bicep_properties.FOLDERS)
    with pytest.raises(KeyError, match=r"Microsoft\.Quantum"):
        bicep_properties._read_property_names(Path(), "Microsoft.Quantum")


def test_properties_are_checked_in_every_branch(tmp_path: Path) -> None:
    """The check finds properties inside ternaries, loops, functions and variables."""
    path = tmp_path / "main.bicep"
    path.write_text(
        "var inner = {\n  a: 1\n}\nvar all = b ? union(inner, { c: [for i in x: { d: 1 }] }) : {}\n", encoding="utf-8"
    )
    source = Template(path)
    value = parse_file(path).find_declarations("var")["all"].value
    assert value is not None
    assert sorted(source.iterate_property_names(value)) == ["a", "c", "d"]
