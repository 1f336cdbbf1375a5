"""Tests of the progress of imports."""

from shared.downloads.import_request import (
    ImportFormat,
    ImportMapping,
    ImportRequest,
    ImportStep,
    add_step_result,
    mark_step_partly_stored,
)
from tests.virtual_time import START

REQUEST = ImportRequest(
    format=ImportFormat.CSV, file_name="a.csv", mapping=ImportMapping(timestamp="time"), upload_expires_at=START
)
STEP = ImportStep(next_position=10, rows=5, accepted=3, duplicates=1, rejected=1)


def test_counts_of_all_import_steps_are_added() -> None:
    """The counts of an import are the sums over its steps (parts of its file); its position is the newest step's."""
    request = add_step_result(REQUEST, 0, STEP)
    request = add_step_result(request, 1, STEP.model_copy(update={"next_position": 25}))
    assert (request.steps, request.position) == (2, 25)
    assert (request.rows, request.accepted, request.duplicates, request.rejected) == (10, 6, 2, 2)


def test_only_the_result_of_the_next_import_step_counts() -> None:
    """The result of a step is ignored if it is already stored, or if the result of the step before is missing."""
    once = add_step_result(REQUEST, 0, STEP)
    assert add_step_result(once, 0, STEP) is once
    assert add_step_result(once, 2, STEP) is once


def test_a_step_is_open_until_its_result_is_stored() -> None:
    """A step is open until its result is stored; a step whose result is stored is not opened again."""
    opened = mark_step_partly_stored(REQUEST, 0, STEP)
    assert (opened.open_step, opened.open_result) == (0, STEP)
    closed = add_step_result(opened, 0, STEP)
    assert (closed.open_step, closed.open_result) == (None, None)
    assert mark_step_partly_stored(closed, 0, STEP) is closed
    assert add_step_result(mark_step_partly_stored(closed, 1, STEP), 0, STEP).open_step == 1


def test_an_open_step_keeps_the_result_of_the_attempt_that_opened_it() -> None:
    """An attempt can neither open nor count a step that another attempt has opened."""
    opened = mark_step_partly_stored(REQUEST, 0, STEP.model_copy(update={"attempt": "a"}))
    late = STEP.model_copy(update={"attempt": "b", "accepted": 0})
    assert mark_step_partly_stored(opened, 0, late) is opened
    assert add_step_result(opened, 0, late) is opened


def test_the_attempt_of_each_counted_step_is_known() -> None:
    """An import remembers which attempt read each step, with one entry for consecutive steps of one attempt."""
    request = REQUEST
    for number, attempt in enumerate(["", "a", "a", "b"]):
        request = add_step_result(request, number, STEP.model_copy(update={"attempt": attempt}))
    assert request.attempts == ((1, "a"), (3, "b"))
    assert [request.find_attempt_of_step(number) for number in range(4)] == ["", "a", "a", "b"]
