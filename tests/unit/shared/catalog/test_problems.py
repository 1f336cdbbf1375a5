"""Tests of the problems of a workspace document."""

from shared.catalog.problems import MAX_LISTED, DocumentError, Problem, format_path


def test_problems_are_sorted_by_position() -> None:
    """The message lists problems in the order of their positions in the document, one per line."""
    later = Problem("w.yaml", 10, 1, "surfaces[0].name", "is required")
    earlier = Problem("w.yaml", 9, 3, "", "is not valid YAML")
    error = DocumentError([later, earlier])
    assert error.problems == [earlier, later]
    assert str(error) == "w.yaml:9:3: is not valid YAML\nw.yaml:10:1: surfaces[0].name: is required"


def test_only_the_first_problems_are_listed() -> None:
    """The message has the first problems and the number of further problems; the error object has all problems."""
    error = DocumentError(Problem("w.yaml", line, 1, "", "bad") for line in range(1, MAX_LISTED + 4))
    assert len(error.problems) == MAX_LISTED + 3
    assert str(error).split("\n")[MAX_LISTED:] == ["... and 3 more"]


def test_paths_of_problems_are_formatted_like_code() -> None:
    """In the path of a problem, indexes are in brackets and names follow a dot."""
    assert format_path(("surfaces", 2, "connections", 0)) == "surfaces[2].connections[0]"
    assert format_path(()) == ""
