"""Tests of the verification process: its results, its failures and its end."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shared.backends.embedded.provenance import SqliteAuditLog, SqliteChainStore
from shared.backends.embedded.provenance_verifier import VerifierProcess, request_from_json_line, request_to_json_line
from shared.provenance.ports import ChainKey, Target
from shared.provenance.verifier import ChainVerdict, ChainVerifier
from shared.provenance.window_verification import (
    VerifierUnavailableError,
    VerifyWindow,
    WindowRequest,
    WindowResult,
    verify_window,
)
from tests.unit.shared.provenance.chains import build_event, build_parallel_options, get_workspace_id

CHAIN = ChainKey(Target.DOMAIN_EVENTS, 'batch/7 "ü"\n')
COUNT = 40
ROOT = Path(__file__).parents[5]
ASKS_AND_STAYS = """
import asyncio, sys
from pathlib import Path
from shared.backends.embedded.provenance_verifier import VerifierProcess
async def main():
    async with VerifierProcess(Path(sys.argv[1])) as process:
        print(process.pid, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.fixture
async def audit_log(tmp_path: Path) -> AsyncIterator[SqliteAuditLog]:
    """Provide an audit log with a chain of events."""
    opened = SqliteAuditLog(tmp_path / "provenance.sqlite", get_workspace_id)
    await asyncio.gather(*(opened.append_to_chain(CHAIN, "editor", build_event(number)) for number in range(COUNT)))
    yield opened
    await opened.close()


async def verify_in_process(store: SqliteChainStore, seconds: float = 60) -> ChainVerdict:
    """Return the verdict of a verification that runs in the process, with four records in each window."""
    return await ChainVerifier(store, get_workspace_id, seconds=seconds, parallel=build_parallel_options(4)).verify(
        CHAIN
    )


@pytest.mark.parametrize("scope", ["", "s", 'batch/7 "ü"\n', "\ud800", "x" * 100_000])
def test_a_verification_request_is_one_line_for_any_scope(scope: str) -> None:
    """A request to the verification process is one line, whatever characters the chain's scope contains."""
    asked = WindowRequest(ChainKey(Target.DOMAIN_EVENTS, scope), 5, 8, 7)
    line = request_to_json_line(asked)
    assert (request_from_json_line(line), line.count(b"\n"), line[-1:]) == (asked, 1, b"\n")


async def test_the_verification_process_returns_the_local_results(audit_log: SqliteAuditLog) -> None:
    """The verification process returns results in the order of the requests, equal to those of a local verification."""
    asked = [WindowRequest(CHAIN, first, first + 3, 30) for first in range(5, COUNT, 4)]
    async with audit_log.store.open_window_verifier() as ask:
        told = await asyncio.gather(*map(ask, asked))
    assert told == [await verify_window(audit_log.store, request) for request in asked]
    assert all(answer.is_valid for answer in told)


async def test_a_concurrent_verification_runs_without_a_process(audit_log: SqliteAuditLog) -> None:
    """If several verifications run at once, only one uses the verification process; all others run in the service."""
    async with audit_log.store.open_window_verifier():
        with pytest.raises(VerifierUnavailableError):
            await audit_log.store.open_window_verifier().__aenter__()
    async with audit_log.store.open_window_verifier():
        pass


async def test_a_change_found_by_the_process_is_reported(audit_log: SqliteAuditLog) -> None:
    """If the last record, which the process verifies first, was changed, the verification reports it."""
    assert (await verify_in_process(audit_log.store)).reason == f"{COUNT} records, all sound"
    await audit_log.store._writing.write(
        lambda file: file.execute("UPDATE records SET user_id = 'nobody' WHERE sequence = ?", (COUNT,))
    )
    verdict = await verify_in_process(audit_log.store)
    assert (verdict.chain_valid, verdict.broken_at) == (False, f"{COUNT:012d}")


async def test_verification_continues_after_its_process_is_killed(audit_log: SqliteAuditLog) -> None:
    """If the verification process is killed, the service continues locally and returns the same verdict."""
    store = StoreWithKilledVerifier(audit_log.store._path)
    assert (await verify_in_process(store)).reason == f"{COUNT} records, all sound"
    assert store.killed
    await store.close()


async def test_a_host_without_processes_verifies_locally(
    audit_log: SqliteAuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the process cannot start or ends at once, the verification runs locally with the same verdict."""
    for command in ("/nowhere/python", "/bin/false"):
        monkeypatch.setattr(sys, "executable", command)
        assert (await verify_in_process(audit_log.store)).reason == f"{COUNT} records, all sound"


async def test_a_cancelled_verification_ends_its_process(audit_log: SqliteAuditLog) -> None:
    """After a cancellation or timeout, the verification process has ended."""
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    store = StoreWithStoppedVerifier(audit_log.store._path, started)
    walk = asyncio.create_task(verify_in_process(store))
    pid = await started
    walk.cancel()
    with pytest.raises(asyncio.CancelledError):
        await walk
    await wait_until_dead(pid)
    await store.close()


async def test_the_verification_process_ends_with_its_parent(audit_log: SqliteAuditLog) -> None:
    """If its parent process is killed, the verification process ends."""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASKS_AND_STAYS, str(audit_log.store._path), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert is_alive(pid)
    parent.kill()
    await parent.communicate()
    await wait_until_dead(pid)


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a process that has ended but was not waited for does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def wait_until_dead(pid: int) -> None:
    """Wait until a process has ended."""
    deadline = time.monotonic() + 30
    while is_alive(pid):
        assert time.monotonic() < deadline, f"the process {pid} still runs"
        await asyncio.sleep(0.02)


class StoreWithKilledVerifier(SqliteChainStore):
    """Embedded store whose verification process is killed after the first result."""

    killed = False

    @asynccontextmanager
    async def open_window_verifier(self) -> AsyncIterator[VerifyWindow]:
        """Return a verifier whose process is killed after the first result."""
        async with VerifierProcess(self._path) as process:

            async def verify_and_kill(request: WindowRequest) -> WindowResult:
                answer = await process.verify(request)
                os.kill(process.pid, signal.SIGKILL)
                self.killed = True
                return answer

            yield verify_and_kill


class StoreWithStoppedVerifier(SqliteChainStore):
    """Embedded store whose verification process is suspended before the first result."""

    def __init__(self, path: Path, started: asyncio.Future[int]) -> None:
        super().__init__(path)
        self.started = started

    @asynccontextmanager
    async def open_window_verifier(self) -> AsyncIterator[VerifyWindow]:
        """Return a verifier whose process is suspended at once."""
        async with VerifierProcess(self._path) as process:
            os.kill(process.pid, signal.SIGSTOP)
            self.started.set_result(process.pid)
            yield process.verify
