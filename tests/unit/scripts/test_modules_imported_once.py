"""Tests of the command that lists modules which only one other module imports."""

import sys
from pathlib import Path

import pytest

from scripts import modules_imported_once
from scripts.modules_imported_once import (
    ModuleImport,
    has_reason_for_separation,
    is_separation_required_by_layout,
    iterate_modules_imported_once,
    main,
)


def test_modules_with_one_importer_are_listed_with_it() -> None:
    """A module that only one other module imports is listed; a package is not, because its own modules import it."""
    found = dict(iterate_modules_imported_once())
    assert found["local.host.life_cycle"] == "local.command"
    assert "shared.errors" not in found
    assert "shared.wiring" not in found


@pytest.mark.parametrize(
    ("module", "importer", "expected"),
    [
        ("shared.backends.azure.event_hubs", "shared.wiring.telemetry", True),
        ("shared.wiring.access", "shared.wiring", True),
        ("functions.reply_docs.workspace", "functions.team", True),
        ("emulators.kusto.extensions.geo", "emulators.kusto.extensions", True),
        ("shared.a", "shared.b", False),
        ("shared.a.b", "shared.a.c", False),
        ("shared.a", "shared.wiring_diagram", False),
    ],
)
def test_modules_that_the_layout_separates_need_no_reason(module: str, importer: str, *, expected: bool) -> None:
    """Adapters, documented replies and registered modules need no reason for being imported by one module only."""
    assert is_separation_required_by_layout(module, importer) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""Rules.\n\nSeparate from ``x`` because y.\n"""', True),
        ('"""Rules.\n\nIt is separate from x.\n"""', True),
        ('"""Rules."""\nSEPARATE = 1', False),
        ("", False),
    ],
)
def test_the_docstring_of_a_module_with_one_importer_states_the_reason(
    tmp_path: Path, text: str, *, expected: bool
) -> None:
    """The docstring of a module with one importer must say why it is a separate module."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").write_text(text, encoding="utf-8")
    assert has_reason_for_separation("a.b", tmp_path) is expected


@pytest.mark.parametrize(("limit", "code"), [(0, 1), (1, 0)])
def test_modules_without_a_reason_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], limit: int, code: int
) -> None:
    """If the command is limited to a package, it counts only modules of this package that state no reason."""
    pairs = [
        ModuleImport("shared.a", "shared.b"),
        ModuleImport("shared.c", "shared.wiring"),
        ModuleImport("local.c", "local.d"),
    ]
    monkeypatch.setattr(modules_imported_once, "iterate_modules_imported_once", lambda: iter(pairs))
    monkeypatch.setattr(modules_imported_once, "has_reason_for_separation", lambda _: False)
    monkeypatch.setattr(sys, "argv", ["modules_imported_once", "shared", "--at-most", str(limit)])
    assert main() == code
    assert capsys.readouterr().out.splitlines() == [
        "shared.a  <-  shared.b  (no reason)",
        "shared.c  <-  shared.wiring",
        "2 modules are imported by exactly one other module; 1 without a reason",
    ]
