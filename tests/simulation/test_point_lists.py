"""Tests of the reviewed lists of crash points."""

from pathlib import Path

import pytest

from tests.simulation.crash_points import list_awaits
from tests.simulation.point_lists import (
    EXCLUDED,
    RARE,
    ListEntry,
    list_awaits_of_components,
    read_entries,
    select_listed_points,
)

MOST_EXCLUDED = 0.1


@pytest.mark.parametrize("file", [EXCLUDED, RARE], ids=lambda file: file.stem)
def test_each_entry_lists_code_and_has_a_reason(file: Path) -> None:
    """Each entry of a list of crash points matches an await of today's code and gives a reason."""
    awaits = list_awaits_of_components()
    for entry in read_entries(file):
        assert any(entry.matches(found) for found in awaits), f"no await of a component matches {entry}"
        assert entry.reason, f"{entry} has no reason"


@pytest.mark.parametrize("file", [EXCLUDED, RARE], ids=lambda file: file.stem)
def test_entries_are_sorted(file: Path) -> None:
    """The entries of a list are sorted and name nothing twice."""
    places = [(entry.path, entry.function, entry.text) for entry in read_entries(file)]
    assert places == sorted(set(places))


def test_at_most_a_tenth_of_all_awaits_is_excluded() -> None:
    """The exclusion list contains at most 10 % of the awaits of all components."""
    points = {found.point for found in list_awaits_of_components()}
    assert len(select_listed_points(EXCLUDED, points)) <= MOST_EXCLUDED * len(points)


def test_no_crash_point_is_excluded_and_rare() -> None:
    """A crash point is in one list only."""
    points = {found.point for found in list_awaits_of_components()}
    assert not select_listed_points(EXCLUDED, points) & select_listed_points(RARE, points)


def test_an_entry_names_a_function_or_the_text_of_an_await(tmp_path: Path) -> None:
    """An entry without a text lists all awaits of its function; one with a text lists those with this text.

    A listed await also lists both sides of the job that it submits.
    """
    path = "shared/provenance/chain_log.py"
    found = list_awaits(path)[0]
    whole, part, other = (tmp_path / name for name in ("whole.txt", "part.txt", "other.txt"))
    whole.write_text(f"# comment\n{path} {found.function}  # reason\n")
    part.write_text(f"{path} {found.function}: {found.text}  # reason\n")
    other.write_text(f"{path} {found.function}: await something_else()  # reason\n")
    assert read_entries(whole) == [ListEntry(path, found.function, "", "reason")]
    assert read_entries(part) == [ListEntry(path, found.function, found.text, "reason")]
    points = {each.point for each in list_awaits(path)} | {f"{path}:{found.lines[0]} after", "commit before"}
    of_function = {each.point for each in list_awaits(path) if each.function == found.function}
    assert select_listed_points(whole, points) >= of_function
    assert select_listed_points(part, points) == {found.point, f"{path}:{found.lines[0]} after"}
    assert select_listed_points(other, points) == set()
