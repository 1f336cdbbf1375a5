"""Environment of all simulated worlds of a process: the workspace that they copy, and functions that they replace."""

import asyncio
import atexit
import gc
import hashlib
import itertools
import logging
import os
import random
import shutil
import sys
import tempfile
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from azure.core.settings import settings as sdk_settings
from azure.core.utils import CaseInsensitiveDict
from azure.cosmos import _base as sdk_requests
from jwt import api_jws, api_jwt

from functions import GROUPS
from shared import interpreter
from shared import runtime as runtime_module
from shared.auth.principals import CredentialKind
from shared.background import runner
from shared.catalog.document import load_document
from shared.cold_data import archive, engine, reading
from shared.downloads import flattening, row_feed, work
from shared.downloads.models import Part
from shared.idempotency import replies
from shared.imports import archive_writer, json_lines_reader, uploaded_file
from shared.imports.step_rows import StepRows
from shared.provenance import chain_trees, inclusion_proofs
from shared.runtime import Runtime
from shared.settings import Settings
from shared.webhooks.events import WebhookEventType
from shared.webhooks.service import EndpointDefinition
from shared.wiring import Services
from tests.simulation.cosmos_account import AccountSnapshot, take_snapshot
from tests.simulation.cosmos_world import create_template_account
from tests.simulation.database import open_files_through
from tests.simulation.event_loop import SimulatedLoop, close_generators_in_their_loop
from tests.simulation.receiver import ReceiverConnection
from tests.virtual_time import START

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tests.simulation.instance import Instance

MEMBERS: Final = ("ann@t", "bob@t", "eve@t", "viewer@t")
DOCUMENT: Final = """
workspace: {id: plant-t, name: Test plant}
tier: enterprise
limits: {requestsPerMinute: 1000000, concurrent: 1000}
policies:
  provenance: {requireApproval: true}
team:
  - {id: ann@t, name: Ann, role: Admin}
  - {id: bob@t, name: Bob, role: Admin}
  - {id: eve@t, name: Eve, role: Admin}
  - {id: viewer@t, name: Viewer, role: Viewer}
connections:
  - {lookup: press, name: Press, type: CLOUD_EVENT_HUB}
  - {lookup: lathe, name: Lathe, type: CLOUD_EVENT_HUB}
surfaces:
  - {lookup: hall, name: Hall, connections: [press, lathe]}
oauthClients:
  - {id: dashboard, name: Dashboard, redirectUris: ["http://127.0.0.1/callback"]}
warmQueries:
  - lookup: heat
    name: Heat
    surface: hall
    kql: print Text = 'heat'
    approval: {approvedBy: bob@t, approvedAt: 2026-01-05T08:00:00Z}
alertRules:
  - lookup: hot
    name: Hot
    severity: critical
    surface: hall
    kind: threshold
    every: PT15S
    query: heat
    condition: &limit {column: Value, operator: gt, value: 50}
  - lookup: lasting
    name: Hot for long
    severity: critical
    surface: hall
    kind: threshold
    every: PT15S
    for: PT40S
    query: heat
    condition: *limit
    groupBy: [Text]
  - lookup: edited
    name: Often edited
    severity: warning
    surface: hall
    kind: threshold
    every: PT15S
    query: heat
    condition: *limit
  - lookup: silent
    name: Silent
    severity: info
    surface: hall
    kind: absence
    every: PT20S
    connections: [press, lathe]
    after: PT1M
"""
_AMENDMENTS: Final = (WebhookEventType.AMENDMENT_PENDING,)
_ALERTS: Final = (WebhookEventType.ALERT_FIRING, WebhookEventType.ALERT_RESOLVED)
_TOKEN_MINUTES: Final = Decimal(43_200)
_STEP_BYTES: Final = 300
_SUBTREE_LEAVES: Final = 4
"""Leaves of a subtree whose root is stored; the service stores the roots of subtrees of 4,096 leaves."""

_TILE_ROOTS: Final = 2
_FAILURES: Final[list[str]] = []


@dataclass(frozen=True)
class Template:
    """Files of a new workspace, which each simulated world copies.

    Attributes:
        folder: folder of its stores.
        tokens: an access token for each member.
        account: snapshot of the Cosmos DB account of the workspace; None if its stores are files only.
    """

    folder: Path
    tokens: Mapping[str, str]
    account: AccountSnapshot | None = None


def _find_memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@cache
def make_template(*, with_cosmos: bool) -> Template:
    """Return the files of a new workspace; a process creates them only once.

    Args:
        with_cosmos: whether the services use a Cosmos DB account, where they can.
    """
    folder = Path(tempfile.mkdtemp(prefix="simulation-template-", dir=_find_memory_folder()))
    owner = os.getpid()
    # A forked process shares the folder and must not remove it.
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return asyncio.run(_fill_template(folder, with_cosmos=with_cosmos))


async def _fill_template(folder: Path, *, with_cosmos: bool) -> Template:
    source = random.Random(0)
    at = START - timedelta(minutes=5)
    runtime = Runtime(now=lambda: at, random_bytes=source.randbytes)
    services = Services(Settings.read({"DATA_DIR": str(folder)}), runtime)
    services.outbound.__dict__["http"] = ReceiverConnection(None)
    account = await create_template_account(services, at.timestamp()) if with_cosmos else None
    await services.provenance.catalog_service.apply(load_document(DOCUMENT, "workspace"), "apply")
    # All keys exist before the first is used: a mutant may never read credentials again.
    keys = {
        member: await services.access.api_keys.issue_without_rights_check("apply", member, "simulation")
        for member in MEMBERS
    }
    tokens = {}
    for member, key in keys.items():
        caller = await services.access.authenticator(f"Bearer {key.api_key}", frozenset({CredentialKind.API_KEY}))
        tokens[member] = (await services.access.token_issuer.issue_token(caller, _TOKEN_MINUTES, None)).token
    for types in (_AMENDMENTS, _ALERTS):
        webhook = EndpointDefinition("https://receiver.example/", types)
        await services.webhook_endpoints.service.create("ann@t", webhook)
    await services.close()
    return Template(folder, tokens, None if account is None else take_snapshot(account))


def make_folder(template: Template) -> Path:
    """Copy the files of a new workspace into a new folder."""
    folder = Path(tempfile.mkdtemp(prefix="simulation-", dir=_find_memory_folder()))
    shutil.copytree(template.folder, folder, dirs_exist_ok=True)
    return folder


class _FailureHandler(logging.Handler):
    """Log handler that collects the tracebacks of unexpected failures."""

    def emit(self, record: logging.LogRecord) -> None:
        """Store the traceback of a log record."""
        if record.exc_info and record.name == "workspace.http":
            _FAILURES.append("".join(traceback.format_exception(*record.exc_info)))


def remove_logged_failures() -> str:
    """Return the tracebacks of unexpected failures that were logged since the last call."""
    text = "\n".join(_FAILURES)
    _FAILURES.clear()
    return text


@cache
def prepare_process() -> None:
    """Replace functions of the service that simulated worlds control; other code is unaffected."""
    for group in GROUPS:
        _ = group.operations
    logger = logging.getLogger("workspace")
    logger.addHandler(_FailureHandler())
    # The SDK and the stores warn about each fault, which the trace contains anyway.
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    logging.getLogger("shared").addHandler(logging.NullHandler())
    open_files_through(_find_process)
    _replace_services()
    _replace_key_derivation()
    _drop_scratch_folders_silently()
    _set_clock_of_tokens()
    _share_decoded_tokens()
    _share_labels_of_requests()
    _copy_headers_fast()
    _share_schedules()
    _share_archive_engine()
    _share_flattening_engine()
    _read_rows_within_jobs()
    _read_uploads_within_jobs()
    _plan_small_parts()
    _read_small_steps()


def _find_process() -> "Instance | None":
    """Return the simulated process whose code is running; return None outside of simulated code."""
    loop = _RUNNING.find_loop() if _RUNNING.find_loop is not None else None
    return None if loop is None else _RUNNING.processes.get(loop)


@dataclass
class _Running:
    """Loop finder and processes of the simulated world that runs; empty between worlds."""

    find_loop: Callable[[], SimulatedLoop | None] | None = None
    processes: "Mapping[SimulatedLoop, Instance]" = field(default_factory=dict)


_RUNNING: Final = _Running()


@contextmanager
def run_in_world(
    find_loop: Callable[[], SimulatedLoop | None], processes: "Mapping[SimulatedLoop, Instance]"
) -> Iterator[None]:
    """Begin a simulated world; disable the garbage collector, because it runs at times that are not repeatable.

    Args:
        find_loop: returns the loop that runs.
        processes: processes of the world by their loops.
    """
    thresholds = gc.get_threshold()
    # A simulated process may enable the collector; without a threshold, it still collects nothing.
    gc.set_threshold(0)
    # Python stores this for each thread; a pool forks new processes in a thread of its own.
    close_generators_in_their_loop()
    _RUNNING.find_loop, _RUNNING.processes = find_loop, processes
    # Each world loads large modules again, as the first world of a process does; otherwise, traces would differ.
    interpreter._loaded.clear()
    # Without this value, the SDK searches the environment for one at each call.
    sdk_settings.tracing_enabled.set_value(False)
    remove_logged_failures()
    leaves = _SUBTREE_LEAVES * _TILE_ROOTS
    try:
        with (
            patch.multiple(chain_trees, SUBTREE_LEAVES=_SUBTREE_LEAVES, TILE_ROOTS=_TILE_ROOTS, TILE_LEAVES=leaves),
            patch.object(inclusion_proofs, "SUBTREE_LEAVES", _SUBTREE_LEAVES),
        ):
            yield
    finally:
        _RUNNING.find_loop = None
        sdk_settings.tracing_enabled.unset_value()
        gc.set_threshold(*thresholds)


def _replace_services() -> None:
    """Make handlers use the services of the running simulated process."""
    from shared import wiring  # noqa: PLC0415

    real = wiring.services

    def find_services() -> Services:
        process = _find_process()
        return real() if process is None else process.services

    for name, module in list(sys.modules.items()):
        if name.startswith("functions.") and getattr(module, "services", None) is real:
            module.services = find_services  # type: ignore[attr-defined]


def _replace_key_derivation() -> None:
    """Replace scrypt with a fast hash, because scrypt would take most of the time of a simulated world."""
    real = replies._derive_secret_bytes

    def derive_key(secret: str, salt: bytes) -> bytes:
        return real(secret, salt) if _RUNNING.find_loop is None else hashlib.sha256(salt + secret.encode()).digest()

    replies._derive_secret_bytes = derive_key


def _drop_scratch_folders_silently() -> None:
    """Prevent the warning about a temporary folder that a crashed process has not deleted.

    The warning would fail whichever test runs when Python deletes the objects of the crashed process.
    """
    real = runtime_module._create_scratch_folder

    def create_folder(parent: Path | None, prefix: str) -> "tempfile.TemporaryDirectory[str]":
        folder = real(parent, prefix)
        if _RUNNING.find_loop is not None:
            folder._finalizer.detach()  # type: ignore[attr-defined]  # a private attribute
            folder._finalizer = weakref.finalize(folder, shutil.rmtree, folder.name, ignore_errors=True)  # type: ignore[attr-defined]
        return folder

    runtime_module._create_scratch_folder = create_folder


def _set_clock_of_tokens() -> None:
    """Make PyJWT use the clock of the running simulated process."""

    class AnyDatetime(type):
        """Metaclass that treats every time as an instance of its class, because PyJWT checks the class."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, datetime)

    class ProcessDatetime(datetime, metaclass=AnyDatetime):
        """Replacement of ``datetime`` whose current time is that of the running process."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # a datetime serves as well
            process = _find_process()
            return datetime.now(tz) if process is None else process.services.runtime.now()

    api_jwt.datetime = ProcessDatetime  # type: ignore[attr-defined]  # replaces the class in one module


def _share_decoded_tokens() -> None:
    """Cache the decoded parts of tokens, because simulated processes decode the same few tokens again and again."""
    real = api_jws.PyJWS._decode_base64url_segment
    decode = lru_cache(maxsize=1_000)(real)

    def decode_segment(segment: bytes, name: str) -> bytes:
        return real(segment, name) if _RUNNING.find_loop is None else decode(segment, name)

    api_jws.PyJWS._decode_base64url_segment = staticmethod(decode_segment)  # type: ignore[method-assign]  # the same


def _share_labels_of_requests() -> None:
    """Give all requests to a simulated Cosmos DB account the same id and date, which the account ignores."""
    module: Any = sdk_requests
    create_id, format_date = module.GenerateGuidId, module.formatdate
    shared_id, shared_date = create_id(), format_date(usegmt=True)

    def find_id() -> str:
        return str(create_id() if _RUNNING.find_loop is None else shared_id)

    def find_date(*args: Any, **kwargs: Any) -> str:
        return str(format_date(*args, **kwargs) if _RUNNING.find_loop is None else shared_date)

    module.GenerateGuidId, module.formatdate = find_id, find_date


def _copy_headers_fast() -> None:
    """Replace methods of the SDK's headers by faster ones with equal results; it copies them for each request."""

    def update(headers: CaseInsensitiveDict, other: Any = (), /, **more: Any) -> None:
        pairs = other.items() if isinstance(other, Mapping) else other
        for name, value in itertools.chain(pairs, more.items()):
            headers._store[name.lower()] = (name, value)

    def items(headers: CaseInsensitiveDict) -> Any:
        return dict(headers._store.values()).items()

    CaseInsensitiveDict.update = update  # type: ignore[assignment, method-assign]  # the same
    CaseInsensitiveDict.items = items  # type: ignore[assignment, method-assign]  # the same


def _share_schedules() -> None:
    """Cache parsed schedules, because each simulated process would parse them again."""
    real = runner.Schedule
    parse = cache(real)

    def find_schedule(expression: str) -> runner.Schedule:
        return real(expression) if _RUNNING.find_loop is None else parse(expression)

    runner.Schedule = find_schedule  # type: ignore[assignment, misc]  # only called


def _share_archive_engine() -> None:
    """Make all processes use one DuckDB engine with one thread, because starting engines is slow."""
    real = engine.open_engine

    @cache
    def open_shared() -> "duckdb.DuckDBPyConnection":
        import duckdb  # noqa: PLC0415  loading it takes long

        shared = duckdb.connect(":memory:", config={"threads": 1})
        shared.execute("SET GLOBAL TimeZone = 'UTC'")
        return shared

    def open_engine(folder: Path) -> "duckdb.DuckDBPyConnection":
        return real(folder) if _RUNNING.find_loop is None else open_shared().cursor()

    for module in (archive, archive_writer, reading):
        module.open_engine = open_engine  # type: ignore[attr-defined]  # imported from the module of the engine


def _share_flattening_engine() -> None:
    """Make all conversions to CSV use one DuckDB engine, because starting engines is slow."""
    real = flattening.Flattener.__init__

    @cache
    def create_shared() -> flattening.Flattener:
        shared = flattening.Flattener.__new__(flattening.Flattener)
        real(shared)
        return shared

    def create(flattener: flattening.Flattener) -> None:
        if _RUNNING.find_loop is None:
            real(flattener)
        else:
            flattener._engine = create_shared()._engine.cursor()

    flattening.Flattener.__init__ = create  # type: ignore[assignment, method-assign]  # the same


def _read_rows_within_jobs() -> None:
    """Make the conversion job of a download run steps of the world while the job waits for rows."""
    real = row_feed.RowFeed._wait_for_batch

    def wait_for_batch(feed: row_feed.RowFeed, upcoming: "Future[pa.RecordBatch | None]") -> "pa.RecordBatch | None":
        process = _find_process()
        if process is None:
            return real(feed, upcoming)
        process.wait_in_job(lambda: upcoming.done() or feed._stop.is_set())
        if feed._stop.is_set():
            raise row_feed.FeedStopped
        return upcoming.result()

    row_feed.RowFeed._wait_for_batch = wait_for_batch  # type: ignore[assignment, method-assign]


def _plan_small_parts() -> None:
    """Limit a download part to one hour, so that a small download has several parts."""
    real = work.plan_parts

    def plan_parts(*args: Any) -> list[Part]:
        if _RUNNING.find_loop is None:
            return real(*args)
        with patch.multiple(work, FILE_BYTES=0, PART_BYTES=0, PART_TIME=timedelta(hours=1)):
            return real(*args)

    work.plan_parts = plan_parts  # type: ignore[assignment]  # the same arguments


def _read_uploads_within_jobs() -> None:
    """Make a job that reads an uploaded file run steps of the world while the job waits for data."""
    real = uploaded_file.UploadedSource._wait_for_read

    def wait_for_read(source: uploaded_file.UploadedSource, reading: "Future[bytes]") -> bytes:
        process = _find_process()
        if process is None:
            return real(source, reading)
        process.wait_in_job(reading.done)
        return reading.result()

    uploaded_file.UploadedSource._wait_for_read = wait_for_read  # type: ignore[assignment, method-assign]


def _read_small_steps() -> None:
    """Limit the number of lines of an import step, so that a small file has several steps."""
    real = json_lines_reader.JsonLinesReader.read_step

    def read_step(reader: json_lines_reader.JsonLinesReader, *args: Any) -> StepRows | None:
        if _RUNNING.find_loop is None:
            return real(reader, *args)
        with patch.object(json_lines_reader, "STEP_BYTES", _STEP_BYTES):
            return real(reader, *args)

    json_lines_reader.JsonLinesReader.read_step = read_step  # type: ignore[assignment, method-assign]
