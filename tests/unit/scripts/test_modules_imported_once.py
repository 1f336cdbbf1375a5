"""Tests of the list of modules that one module imports."""

import sys

import pytest

from scripts import modules_imported_once
from scripts.modules_imported_once import find_modules_imported_once, main


def test_pairs_name_the_only_importer() -> None:
    """A package is no pair, because its modules import it, too."""
    found = dict(find_modules_imported_once())
    assert found["local.host.life_cycle"] == "local.__main__"
    assert "shared.errors" not in found
    assert "shared.wiring" not in found


def test_the_report_is_restricted_to_a_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number counts the listed modules."""
    pairs = [("shared.a", "shared.b"), ("local.c", "local.d")]
    monkeypatch.setattr(modules_imported_once, "find_modules_imported_once", lambda: iter(pairs))
    monkeypatch.setattr(sys, "argv", ["modules_imported_once", "shared"])
    main()
    assert capsys.readouterr().out.splitlines() == [
        "shared.a  <-  shared.b",
        "1 modules are imported by exactly one other module",
    ]
