"""What is written for operators names what is there."""

import json
import re

from shared.settings import Settings, Stores
from tests.infra.templates import BICEP, Templates

ROOT = BICEP.parents[1]
AZURE = (ROOT / "docs" / "azure.md").read_text(encoding="utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_every_template_is_told() -> None:
    """docs/azure.md says what each template makes, save the two that compose or serve others."""
    for template in Templates().all:
        name = template.path.stem
        assert name in {"main", "identity"} or f"{name}.bicep`" in AZURE, name


def test_every_alert_has_its_remedy() -> None:
    """docs/operations.md says what to do for each alert, with its severity, and for none that is not there."""
    alerts = Templates().named("alerts")
    declared = {each["name"]: each["severity"] for name in ("searches", "metrics") for each in alerts.variable(name)}
    told = {
        name: int(severity) for name, severity in re.findall(r"^\| `([a-z0-9-]+)` \((\d)\)", OPERATIONS, re.MULTILINE)
    }
    assert told == declared


def test_parameters_that_are_named_are_there() -> None:
    """A name in the form of a parameter is one of main.bicep, or a setting's or Azure's own."""
    known = Templates().named("main").parameters | {"requestId", "principal", "throttled", "take_any", "serviceName"}
    for text in (AZURE, OPERATIONS):
        for name in re.findall(r"`([a-z]+[A-Z]\w+)`", text):
            assert name in known, name


def test_scripts_that_are_named_are_there() -> None:
    """Every script and file that a command takes exists."""
    for path in set(re.findall(r"(?<![\w/])((?:scripts|infra|samples)/[\w./-]*\w)", AZURE + OPERATIONS)):
        assert (ROOT / path).exists(), path


def test_the_sample_of_settings_is_whole() -> None:
    """local.settings.sample.json names each setting but the one that the platform sets; all are taken."""
    values = json.loads((ROOT / "local.settings.sample.json").read_text(encoding="utf-8"))["Values"]
    known = {str(field.alias) for field in Settings.model_fields.values()} - {"WEBSITE_HOSTNAME"}
    assert set(values) == known | {"FUNCTIONS_WORKER_RUNTIME", "AzureWebJobsStorage"}
    assert all(isinstance(value, str) for value in values.values())
    assert Settings.read(values).stores is Stores.EMBEDDED
