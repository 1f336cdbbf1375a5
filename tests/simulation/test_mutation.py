"""Tests of the mutants: patches with known defects that the worlds must find."""

from pathlib import Path

import pytest

from tests.simulation.exploration import list_components
from tests.simulation.mutation import apply_mutant, copy_code, list_mutants, read_components

LEAST_MUTANTS = 15


@pytest.fixture(scope="module")
def code_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the code."""
    folder = tmp_path_factory.mktemp("code")
    copy_code(folder)
    return folder


@pytest.mark.parametrize("patch", list_mutants(), ids=lambda patch: patch.stem)
def test_each_mutant_patch_applies_to_the_current_code(patch: Path, code_copy: Path) -> None:
    """Each patch can be applied to the current code and reverted; if not, the patch must be updated."""
    assert apply_mutant(patch, code_copy)
    assert apply_mutant(patch, code_copy, is_reverse=True)


@pytest.mark.parametrize("patch", list_mutants(), ids=lambda patch: patch.stem)
def test_each_mutant_names_components(patch: Path) -> None:
    """The first line of each patch names existing components."""
    known = {component.name for component in list_components()}
    assert set(read_components(patch).split(",")) <= known


def test_the_mutants_cover_at_least_15_kinds_of_defects() -> None:
    """The mutants cover at least 15 kinds of defects."""
    assert len(list_mutants()) >= LEAST_MUTANTS
