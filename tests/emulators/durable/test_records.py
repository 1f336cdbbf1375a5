"""Tests of the stored progress of orchestrations."""

from emulators.durable.records import OrchestrationProgress, ScheduledAction, parse_progress


def test_the_progress_of_an_orchestration_is_read_as_stored() -> None:
    """Stored progress is read unchanged, so that task ids continue after a restart."""
    progress = OrchestrationProgress(waits={"go": 1}, cancelled=[4])
    progress.asked.append(ScheduledAction("activity a", progress.assign_task_id()))
    progress.asked.append(ScheduledAction("custom status", None))
    restored = parse_progress(progress.to_json())
    assert restored == progress
    assert restored.assign_task_id() == 1


def test_a_new_orchestration_has_no_progress() -> None:
    """An empty JSON object is parsed as the progress of an orchestration that has not started."""
    assert parse_progress("{}") == OrchestrationProgress()
