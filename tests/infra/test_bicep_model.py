"""Tests that the parser and the model of deployments reject constructs that they do not know."""

from pathlib import Path
from typing import Any

import pytest

from tests.infra.bicep_model import UNKNOWN, Deployment, DeploymentError, deploy_template
from tests.infra.bicep_syntax import BicepSyntaxError, parse_file

ACCOUNT = "resource account 'Microsoft.Storage/storageAccounts@2025-06-01' = "


def write_template(folder: Path, text: str, name: str = "main.bicep") -> Path:
    """Write a template and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def evaluate_template(folder: Path, text: str, **parameters: Any) -> Deployment:
    """Write a template, evaluate it, and return the deployment."""
    return deploy_template(write_template(folder, text), parameters)


@pytest.mark.parametrize(
    "text",
    [
        "assert rule = true\n",
        "var text = 'no end\n",
        "var list = [...others]\n",
        "param values (string | int)[]\n",
        "resource account 'Microsoft.Storage/storageAccounts@2025-06-01' = {\n  name 'x'\n}\n",
        "var value = a ? b\n",
        "var value = §\n",
    ],
)
def test_unknown_construct_is_rejected(tmp_path: Path, text: str) -> None:
    """The parser rejects a construct that it does not know instead of skipping it."""
    with pytest.raises(BicepSyntaxError):
        parse_file(write_template(tmp_path, text))


def test_unknown_function_is_rejected(tmp_path: Path) -> None:
    """The model rejects a function that it does not know instead of guessing its value."""
    with pytest.raises(DeploymentError, match="dateTimeAdd"):
        evaluate_template(tmp_path, "var later = dateTimeAdd('2026-01-01', 'P1D')\n")


def test_conditions_loops_and_names_are_evaluated(tmp_path: Path) -> None:
    """A false condition omits a resource, a loop creates one per item, and a child's name contains its parent's."""
    text = f"""
param names string[]
param isNeeded bool
{ACCOUNT}{{
  name: 'first'
}}
resource rest 'Microsoft.Storage/storageAccounts@2025-06-01' = [for (name, index) in names: {{
  name: '${{toLower(name)}}${{index}}'
}}]
resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2025-01-01' = if (isNeeded) {{
  parent: account
  name: 'default'
}}
output id string = isNeeded ? blobs.id : ''
"""
    with_all = evaluate_template(tmp_path, text, names=["A", "B"], isNeeded=True)
    assert [each.name for each in with_all.resources] == ["first", "a0", "b1", "first/default"]
    assert with_all.outputs["id"].endswith("/storageAccounts/first/blobServices/default")
    assert len(evaluate_template(tmp_path, text, names=[], isNeeded=False).resources) == 1


def test_names_and_modules_that_depend_on_run_time_values_are_unknown(tmp_path: Path) -> None:
    """A value known only at run time makes a resource's name unknown, and hides a module whose condition uses it."""
    write_template(
        tmp_path, f"{ACCOUNT}{{\n  name: 'a'\n}}\noutput key string = account.properties.key\n", "inner.bicep"
    )
    guarded = f"param key string\n{ACCOUNT}if (!empty(key)) {{\n  name: 'b'\n}}\n"
    write_template(tmp_path, guarded, "guarded.bicep")
    text = f"""
module inner 'inner.bicep' = {{
}}
module guarded 'guarded.bicep' = {{
  params: {{
    key: inner.outputs.key
  }}
}}
{ACCOUNT}{{
  name: 'x${{inner.outputs.key}}'
}}
output key string = inner.outputs.key
"""
    deployment = evaluate_template(tmp_path, text)
    assert [each.name for each in deployment.resources] == ["a", None]
    assert len(deployment.hidden) == 1
    assert deployment.outputs["key"] is UNKNOWN


def test_output_of_an_omitted_module_is_rejected(tmp_path: Path) -> None:
    """The model rejects a use of the output of a module with a false condition, as Azure does."""
    write_template(tmp_path, "output key string = 'a'\n", "inner.bicep")
    text = "param is bool\nmodule inner 'inner.bicep' = if (is) {\n}\noutput key string = inner!.outputs.key\n"
    assert evaluate_template(tmp_path, text, **{"is": True}).outputs == {"key": "a"}
    with pytest.raises(DeploymentError, match="omits this module"):
        evaluate_template(tmp_path, text, **{"is": False})


def test_name_that_is_declared_twice_is_rejected(tmp_path: Path) -> None:
    """The parser rejects a file that declares two types, parameters or variables with the same name."""
    with pytest.raises(DeploymentError, match="declared twice"):
        evaluate_template(tmp_path, "type name = string\nparam name name = 'a'\n")


def test_functions_types_and_lambdas_are_evaluated(tmp_path: Path) -> None:
    """User-defined functions, unions, imported sealed types (no additional properties) and lambdas are evaluated."""
    write_template(tmp_path, "@export()\n@sealed()\ntype hub = {\n  name: string\n  group: string?\n}\n", "types.bicep")
    text = """import { hub } from 'types.bicep'
param hubs hub[]
func lower(text string) string => toLower(replace(text, ' ', ''))
output names string[] = union(['a'], map(hubs, each => lower(each.name)), map(range(0, 2), i => 'x${i}'))
output first string = hubs[0].?group ?? 'none'
"""
    deployment = evaluate_template(tmp_path, text, hubs=[{"name": "A"}, {"name": "B b"}])
    assert deployment.outputs == {"names": ["a", "bb", "x0", "x1"], "first": "none"}
    with pytest.raises(DeploymentError, match="groups is unknown"):
        evaluate_template(tmp_path, text, hubs=[{"name": "A", "groups": "x"}])
