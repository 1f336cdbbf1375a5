"""Tests that kql-language.md and the lists of KQL names match both the engine and the KQL language service."""

import subprocess
import sys

import pytest

from scripts.kql_exclusions import EXCLUSIONS, OPERATORS
from scripts.kql_known_differences import DIFFERENCES
from scripts.kql_language import (
    EDITOR,
    LANGUAGE,
    ROOT,
    TARGET,
    build_editor_names_module,
    format_kql_names,
    read_kql_names_by_kind,
    read_kql_names_from_service,
)
from tests.node import find_node
from tests.node_suites.running import find_missing_requirement

_MAX_DIFFERENCES = 40


def test_the_kql_page_lists_exactly_the_supported_parts() -> None:
    """The page lists exactly the parts of KQL that the engine supports."""
    # A process of its own, because the engine changes the translator library.
    code = (
        "from scripts.kql_language import *; patch_translator_and_install_extensions(); "
        "print(build_kql_comparison_page(read_kql_names_by_kind()), end='')"
    )
    page = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert page == TARGET.read_text(encoding="utf-8"), "run: .venv/bin/python -m scripts.kql_language"


def test_the_console_editor_knows_exactly_the_kql_names() -> None:
    """The console's editor highlights and completes exactly the names that the KQL language service knows."""
    assert build_editor_names_module(read_kql_names_by_kind()) == EDITOR.read_text(encoding="utf-8"), (
        "run: .venv/bin/python -m scripts.kql_language"
    )


def test_the_file_of_kql_names_equals_the_language_service() -> None:
    """The file of KQL names contains the functions, aggregates, plugins and operators of the language service."""
    if reason := find_missing_requirement("@kusto/language-service-next"):
        pytest.skip(reason)
    language = read_kql_names_from_service(find_node() or "node")
    assert format_kql_names(language) == LANGUAGE.read_text(encoding="utf-8")


def test_every_exclusion_and_example_names_a_part_of_kql() -> None:
    """Each exclusion and each example in the lists names an existing part of KQL."""
    language = read_kql_names_by_kind()
    names = {symbol["name"] for kind in ("functions", "aggregates", "plugins") for symbol in language[kind]}
    assert set(EXCLUSIONS) <= names | set(language["operators"])
    assert set(OPERATORS) <= set(language["operators"])


def test_the_known_differences_are_few_and_have_reasons() -> None:
    """The table of known differences has at most 40 rows, each with a reason."""
    assert len(DIFFERENCES) <= _MAX_DIFFERENCES
    assert all(len(reason) > 20 for reason in DIFFERENCES.values())
