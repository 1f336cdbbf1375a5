"""Tests that the templates are consistent with each other, without the compiler."""

import re
from pathlib import Path

import pytest

from tests.infra.bicep_syntax import Literal, Object
from tests.infra.templates import BICEP, Template, Templates, get_property, to_returned_name

TEMPLATES = Templates()
_OUTPUT = re.compile(r"\b(\w+)!?\.\??outputs\.\??(\w+)")
_KEY = re.compile(r"^\s*(//.*|'?[\w.]+'?:)", re.MULTILINE)
_GIVEN = re.compile(r"^param (\w+) =", re.MULTILINE)


@pytest.mark.parametrize("template", TEMPLATES.all, ids=lambda template: template.path.stem)
def test_modules_get_exactly_their_declared_parameters(template: Template) -> None:
    """A template passes to each module all parameters that the module requires, and only declared parameters."""
    for symbol, path, given in template.iterate_modules():
        used = TEMPLATES.find_template(path.stem)
        assert used.path == path, symbol
        assert used.required <= given <= used.parameters, symbol


@pytest.mark.parametrize("template", TEMPLATES.all, ids=lambda template: template.path.stem)
def test_used_module_outputs_exist(template: Template) -> None:
    """Each module output that a template uses exists."""
    files = {symbol: path for symbol, path, _ in template.iterate_modules()}
    used = _OUTPUT.findall(template.text)
    # The pattern must match every use.
    assert len(used) == len(re.findall(r"\boutputs\b", template.text))
    for symbol, name in used:
        assert name in TEMPLATES.find_template(files[symbol].stem).outputs, f"{symbol}.outputs.{name}"


def test_every_output_of_a_module_is_used() -> None:
    """A template uses each output of each module."""
    taken = set()
    for template in TEMPLATES.all:
        files = {symbol: path.stem for symbol, path, _ in template.iterate_modules()}
        taken |= {(files[symbol], name) for symbol, name in _OUTPUT.findall(template.text)}
    modules = {each.path.stem for each in TEMPLATES.all if each.path.parent.name == "modules"}
    assert {
        (each.path.stem, name) for each in TEMPLATES.all for name in each.outputs if each.path.stem in modules
    } == taken


def test_outputs_of_a_deployment_are_in_capitals() -> None:
    """The names of the main template's outputs are in capitals, because Resource Manager does not preserve their case.

    The scripts convert the names that it returns to capitals.
    """
    outputs = TEMPLATES.find_template("main").outputs
    assert {name.upper() for name in outputs} == outputs
    assert to_returned_name("AZURE_RESOURCE_GROUP") == "azurE_RESOURCE_GROUP"


@pytest.mark.parametrize("template", TEMPLATES.all, ids=lambda template: template.path.stem)
def test_every_variable_and_import_of_a_template_is_used(template: Template) -> None:
    """A template uses all of its variables, functions, types and imports; the compiler warns of unused ones."""
    text = re.sub(r"//.*", "", template.text)
    declared = [
        *template.file.find_declarations("var"),
        *template.file.find_declarations("func"),
        *template.file.imports,
    ]
    assert [name for name in declared if len(re.findall(rf"\b{name}\b", text)) == 1] == []


@pytest.mark.parametrize("template", TEMPLATES.all, ids=lambda template: template.path.stem)
def test_every_parameter_of_a_template_is_used(template: Template) -> None:
    """A template uses each of its parameters."""
    used = _KEY.sub("", template.text)
    for name in template.parameters:
        assert len(re.findall(rf"\b{name}\b", used)) > 1, name


@pytest.mark.parametrize("path", sorted(BICEP.glob("*.bicepparam")), ids=lambda path: path.stem)
def test_parameter_files_set_exactly_known_and_required_parameters(path: Path) -> None:
    """Each size sets each required parameter once, and only parameters that exist."""
    main, given = TEMPLATES.find_template("main"), _GIVEN.findall(path.read_text(encoding="utf-8"))
    assert main.required <= set(given) <= main.parameters
    assert len(given) == len(set(given))


def test_no_template_passes_secrets() -> None:
    """No template reads keys, and no parameter or output is a secret."""
    for template in TEMPLATES.all:
        assert not re.search(r"\blist\w*(Keys|Secrets|Sas)\b|@secure", template.text), template.path


@pytest.mark.parametrize("template", TEMPLATES.all, ids=lambda template: template.path.stem)
def test_access_by_key_is_disabled(template: Template) -> None:
    """Access by key is disabled for each service that supports it."""
    switches = {
        "Microsoft.Storage/storageAccounts": ("allowSharedKeyAccess", False),
        "Microsoft.DocumentDB/databaseAccounts": ("disableLocalAuth", True),
        "Microsoft.EventHub/namespaces": ("disableLocalAuth", True),
        "Microsoft.SignalRService/webPubSub": ("disableLocalAuth", True),
        "Microsoft.Devices/IotHubs": ("disableLocalAuth", True),
        "Microsoft.Insights/components": ("DisableLocalAuth", True),
    }
    for symbol, kind, body in template.iterate_resources():
        if (switch := switches.get(kind.partition("@")[0])) is not None:
            properties = get_property(body, "properties")
            assert isinstance(properties, Object), symbol
            assert get_property(properties, switch[0]) == Literal(switch[1]), symbol
