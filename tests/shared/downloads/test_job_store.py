"""Download jobs in SQLite."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from shared.downloads.models import Job, Part
from shared.errors import WorkspaceError
from tests.shared.downloads.plant import HOUR, START, Plants


async def test_a_job_comes_back_as_it_was_stored(plants: Plants) -> None:
    """Every member survives, in another process too, and jobs are listed by their owner, newest first."""
    plant = plants.make()
    first = await plant.job("a", leaves={"pump": (("x", "y"), ("",))})
    second = await plant.job("b", created_at=START + HOUR)
    await plant.job("c", owner="somebody")
    other = plants.make().jobs
    assert await other.get("a") == first
    assert await other.owned_by("editor@t") == [second, first]
    assert await other.get("nowhere") is None
    assert await other.change("nowhere", Job.cancelled) is None
    await other.delete("a")
    await other.delete("a")
    assert await plant.jobs.owned_by("editor@t") == [second]


async def test_changes_at_once_all_count(plants: Plants) -> None:
    """No change is lost between two processes."""
    plant = plants.make()
    part = Part(connection="pump", start=START, end=START + HOUR)
    await plant.job(parts=(part,) * 20)
    other = plants.make().jobs
    stores = (plant.jobs, other)

    async def done(number: int) -> None:
        leaf = frozenset({(f"k{number}",)})
        await stores[number % 2].change("j1", lambda job: job.converted(number, (), leaf))

    await asyncio.gather(*(done(number) for number in range(20)))
    job = await plant.stored()
    assert all(each.files == () for each in job.parts or ())
    assert len(job.leaves["pump"]) == 20


async def test_a_change_that_refuses_leaves_the_job(plants: Plants) -> None:
    """What the change raises comes through."""
    plant = plants.make()
    await plant.job()
    await plant.jobs.change("j1", Job.cancelled)
    before = await plant.stored()
    with pytest.raises(WorkspaceError, match="ended already"):
        await plant.jobs.change("j1", Job.cancelled)
    assert await plant.stored() == before


async def test_expired_jobs_are_found(plants: Plants) -> None:
    """A job is expired from its end on."""
    plant = plants.make()
    job = await plant.job()
    assert await plant.jobs.expired(job.expires_at - timedelta(microseconds=1)) == []
    assert await plant.jobs.expired(job.expires_at) == ["j1"]


async def test_a_file_that_cannot_be_opened_is_an_outage(tmp_path: Path, plants: Plants) -> None:
    """A file that does not open is told as unavailable."""
    (tmp_path / "jobs.sqlite").mkdir()
    with pytest.raises(WorkspaceError) as failure:
        await plants.make().jobs.get("x")
    assert failure.value.code == "DOWNLOADS_UNAVAILABLE"
