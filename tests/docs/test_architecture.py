"""Tests that docs/explanation/architecture.md names all background jobs."""

import re
from pathlib import Path

from functions.orchestration_history import get_history_job
from shared.settings import Settings
from shared.wiring import Services

ROOT = Path(__file__).parents[2]


async def test_the_page_names_each_background_job(tmp_path: Path) -> None:
    """The list of background jobs on the page names each job of the service."""
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    listed = re.search(
        r"starts the jobs that are due: (.*?) \(`shared/wiring/background\.py`\) and `([\w-]+)`", text, re.DOTALL
    )
    assert listed
    services = Services(Settings.read({"DATA_DIR": str(tmp_path), "WEB_PUBSUB_ENDPOINT": "https://live.example"}))
    jobs = [job.name for job in services.background._iterate_jobs()]
    await services.close()
    assert sorted(re.findall(r"`([^`]+)`", listed[1])) == sorted(jobs)
    assert listed[2] == get_history_job().name
