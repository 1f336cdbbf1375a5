"""Replay of CSV files over HTTP to a simulated service."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from local.host.running_hosts import record_host
from local.replay import __main__ as replay
from local.replay import client as replay_client
from local.replay.__main__ import AcceptedRows, Pace
from local.replay.client import TelemetryClient
from local.replay.errors import ReplayError
from local.replay.rows import CsvFile, FileError, RepeatFilter, ReplayTarget
from local.replay.service import LocalService, NoHostError, RemoteService, checked_session
from shared.catalog.models import Source
from shared.telemetry.acceptance import parse_messages
from shared.telemetry.layout import layout_from_source

KEY = "oik_abcdefgh_secret"
RIG = ReplayTarget("rig")
TIME = "2026-01-05T08:00:00Z"


class TargetService:
    """Simulated service that issues tokens, accepts telemetry and can fail."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.accepted: list[str] = []
        self.arrays: list[int] = []
        self.tokens = 0
        self.failures: list[web.Response | None] = []
        self.requests = 0
        self.url = ""

    async def health(self, request: web.Request) -> web.Response:  # noqa: ARG002  the handler's signature
        """Return 200."""
        return web.json_response({})

    @web.middleware
    async def count(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Count requests."""
        self.requests += 1
        reply: web.StreamResponse = await handler(request)
        return reply

    async def token(self, request: web.Request) -> web.Response:
        """Issue a token."""
        if request.headers["Authorization"] != f"Bearer {KEY}":
            return web.json_response({"code": "UNAUTHORIZED", "detail": "Unknown key."}, status=401)
        assert request.query["scopes"] == "Workspace.Telemetry.Write"
        self.tokens += 1
        return web.json_response({"Token": f"t{self.tokens}", "ExpiresAt": "2026-01-01T00:00:00Z"})

    async def telemetry(self, request: web.Request) -> web.Response:
        """Accept an array or fail; None drops the connection after the messages are stored."""
        if request.headers["Authorization"] != f"Bearer t{self.tokens}":
            return web.json_response({"code": "UNAUTHORIZED"}, status=401)
        array = json.loads(await request.read(), parse_float=Decimal)
        failure = self.failures.pop(0) if self.failures else web.Response()
        if failure is not None and failure.status != 200:
            return failure
        for message in array:
            self.messages[message["messageId"]] = message
            self.accepted.append(message["messageId"])
        self.arrays.append(len(array))
        if failure is None:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({"accepted": len(array)}, status=202)


@pytest.fixture
async def service() -> AsyncIterator[TargetService]:
    """Return a running service."""
    made = TargetService()
    app = web.Application(client_max_size=2**20, middlewares=[made.count])
    app.router.add_get("/healthz", made.health)
    app.router.add_get("/workspace/api/keys/jwt", made.token)
    app.router.add_post("/oi-api/telemetry/rig", made.telemetry)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


def _file(folder: Path, text: str, name: str = "rig.csv") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _numbers(count: int) -> str:
    return "timestamp,a\n" + "".join(f"{TIME},{number}\n" for number in range(count))


async def _replay(file: CsvFile, service: TargetService, pace: Pace | None = None, key: str = KEY) -> int:
    async with checked_session() as session:
        client = TelemetryClient(session, RemoteService(service.url), "rig", key, first_wait=0.001)
        return await replay.replay(file.rows(), client, pace or Pace(), AcceptedRows())


async def test_rows_become_messages(tmp_path: Path, service: TargetService) -> None:
    """Numbers are unchanged, empty cells omitted, and the time column becomes the timestamp."""
    text = (
        "ts;Pressure;State;Note;Big\n"
        "2026-01-05 08:00:00;1.50;on;;18446744073709551617\n"
        "2026-01-05T09:00:00+01:00;007;;a b;1e5\n"
    )
    file = CsvFile(_file(tmp_path, text), RIG, ";", "ts", UTC, "rig-1")
    assert await _replay(file, service) == 2
    identifiers = list(service.messages)
    assert len(set(identifiers)) == 2
    assert list(service.messages.values()) == [
        {
            "messageId": identifiers[0],
            "deviceId": "rig-1",
            "timestamp": "2026-01-05T08:00:00.000000Z",
            "Pressure": Decimal("1.50"),
            "State": "on",
            "Big": 18446744073709551617,
        },
        {
            "messageId": identifiers[1],
            "deviceId": "rig-1",
            "timestamp": "2026-01-05T08:00:00.000000Z",
            "Pressure": "007",
            "Note": "a b",
            "Big": Decimal("1e5"),
        },
    ]


@given(st.decimals(allow_nan=False, allow_infinity=False).map(str) | st.text(st.characters(codec="utf-8")))
def test_any_cell(tmp_path_factory: pytest.TempPathFactory, cell: str) -> None:
    """Any cell becomes a JSON number with its digits, or a string."""
    quoted = cell.replace('"', '""')
    path = _file(tmp_path_factory.getbasetemp(), "")
    path.write_bytes(f'timestamp,v\n{TIME},"{quoted}"\n'.encode())
    (row,) = CsvFile(path, RIG).rows()
    value = json.loads(row.message, parse_float=str, parse_int=str).get("v")
    assert value == (cell if cell.strip() else None) or value == cell.strip()


async def test_replaying_twice_changes_nothing(tmp_path: Path, service: TargetService) -> None:
    """A second replay sends the same messages, also from a renamed file."""
    path = _file(tmp_path, _numbers(1200))
    assert await _replay(CsvFile(path, RIG), service, Pace(batch=100)) == 1200
    first = dict(service.messages)
    renamed = CsvFile(path.rename(tmp_path / "other.csv"), RIG)
    assert await _replay(renamed, service, Pace(batch=500, concurrency=1)) == 1200
    assert service.messages == first
    assert len(first) == 1200
    assert service.arrays == [100] * 12 + [500, 500, 200]


def _ids(path: Path, **options: Any) -> list[str]:
    rows = CsvFile(path, **{"target": RIG, **options}).rows()
    return [json.loads(row.message)["messageId"] for row in rows]


def test_ids_are_of_the_content(tmp_path: Path) -> None:
    """The message id depends on connection, device, time and values only."""
    text = f"timestamp,a,b\n{TIME},1,x\n{TIME},2,x\n"
    first = _ids(_file(tmp_path, text, "a/0.csv"))
    assert len(set(first)) == 2
    assert _ids(_file(tmp_path, f"b,timestamp,a\nx,{TIME},2\nx,{TIME},1.0\n", "b/0.csv"))[0] == first[1]
    others = [
        _ids(_file(tmp_path, text), device="d"),
        _ids(_file(tmp_path, text), target=ReplayTarget("press")),
        _ids(_file(tmp_path, text.replace("08:00:00", "08:00:01"))),
        _ids(_file(tmp_path, text.replace("a,b", "b,a"))),
        _ids(_file(tmp_path, text.replace(",x", ",y"))),
    ]
    assert len({*first, *(each for other in others for each in other)}) == 12
    # The default device of the service yields the same id.
    assert _ids(_file(tmp_path, text), device="rig") == first


def test_repeated_rows_are_counted(tmp_path: Path) -> None:
    """Repeated rows of all files are skipped and counted; a messageId identifies a row."""
    one = CsvFile(_file(tmp_path, f"timestamp,a\n{TIME},1\n{TIME},1\n{TIME},2\n", "a/0.csv"), RIG)
    two = CsvFile(_file(tmp_path, f"timestamp,a\n{TIME},2\n{TIME},3\n", "b/0.csv"), RIG)
    own = CsvFile(_file(tmp_path, f"timestamp,a,messageId\n{TIME},1,m\n{TIME},1,m\n{TIME},1,n\n"), RIG)
    rows = RepeatFilter()
    left = list(rows.unique_rows([*one.rows(), *two.rows(), *own.rows()]))
    assert (rows.read, rows.repeated, len(left)) == (8, 3, 5)


def test_one_id_for_different_rows_is_refused(tmp_path: Path) -> None:
    """Two rows with the same messageId and different content are rejected."""
    file = CsvFile(_file(tmp_path, f"timestamp,a,messageId\n{TIME},1,m\n{TIME},2,m\n"), RIG)
    with pytest.raises(FileError, match=r"row 2 has the messageId of another row with different content \(.*row 1\)"):
        replay.check_files([file])


def _busy(**headers: str) -> web.Response:
    return web.json_response({"code": "THROTTLED"}, status=429, headers=headers)


async def test_failures_on_the_way(tmp_path: Path, service: TargetService) -> None:
    """Throttling, an outage and a lost reply are retried."""
    file = CsvFile(_file(tmp_path, _numbers(40)), RIG)
    service.failures = [_busy(**{"Retry-After": "0"}), web.Response(status=503), None, _busy()]
    assert await _replay(file, service, Pace(batch=10, concurrency=2)) == 40
    assert sorted(message["a"] for message in service.messages.values()) == list(range(40))
    assert len(service.accepted) == 50


async def test_token_refresh(tmp_path: Path, service: TargetService) -> None:
    """A rejected token is replaced once, for all requests."""
    file = CsvFile(_file(tmp_path, _numbers(40)), RIG)
    rejected = web.json_response({"code": "UNAUTHORIZED"}, status=401)
    service.failures = [web.Response(), rejected]
    assert await _replay(file, service, Pace(batch=10, concurrency=1)) == 40
    assert service.tokens == 2


async def test_refusals_end_the_replay(tmp_path: Path, service: TargetService) -> None:
    """A rejection ends the replay with its reason and rows; an error does not show the key."""
    file = CsvFile(_file(tmp_path, _numbers(40)), RIG)
    service.failures = [
        web.Response(),
        web.json_response({"code": "CONNECTION_DISABLED", "detail": "It is disabled."}, status=409),
    ]
    with pytest.raises(
        ReplayError, match=r"rig\.csv: row 11 to .*rig\.csv: row 20: 409 CONNECTION_DISABLED It is disabled\.$"
    ):
        await _replay(file, service, Pace(batch=10, concurrency=1))
    with pytest.raises(ReplayError, match=r"^no token for the API key: 401 UNAUTHORIZED Unknown key\.$"):
        await _replay(file, service, key="oik_wrong")


async def test_gives_up(tmp_path: Path, service: TargetService) -> None:
    """The replay fails after ten attempts."""
    service.failures = [_busy(**{"Retry-After": "0"}) for _ in range(10)]
    with pytest.raises(ReplayError, match="after 10 attempts: 429 THROTTLED"):
        await _replay(CsvFile(_file(tmp_path, _numbers(1)), RIG), service)


async def test_wide_rows(tmp_path: Path, service: TargetService) -> None:
    """Batches are smaller than the body limit of the service."""
    file = CsvFile(_file(tmp_path, "timestamp,b\n" + f"{TIME},{'x' * 100_000}\n" * 30), RIG)
    assert await _replay(file, service) == 30
    assert max(service.arrays) == 8


async def test_pace(tmp_path: Path) -> None:
    """With a speed, rows are sent at their due times."""
    text = "timestamp,a\n" + "".join(f"2026-01-05T08:00:{second:02d}Z,1\n" for second in (0, 0, 1, 30, 30))
    file = CsvFile(_file(tmp_path, text), RIG)
    started = asyncio.get_running_loop().time()
    found = [[row.place[-1] for row in batch] async for batch in replay.collect_batches(file.rows(), Pace(speed=100))]
    assert found == [["1", "2", "3"], ["4", "5"]]
    assert asyncio.get_running_loop().time() - started >= 0.29


@pytest.mark.parametrize(
    ("text", "file", "message"),
    [
        ("timestamp;b\n1;2\n", {}, r"one column, 'timestamp;b'.*; try --delimiter ';'$"),
        ("timestamp\tb\n1;2\n", {}, "try --delimiter tab$"),
        ("timestamp;b\n1;2\n", {"delimiter": "|"}, "try --delimiter ';'$"),
        (
            "timestamp,a;b,c;d\n",
            {"delimiter": ";"},
            "column 'timestamp' is missing; the columns are timestamp,a, b,c, d; try --delimiter ','$",
        ),
        ("t;a,0;b,1;c\n", {}, r"column 'timestamp' is missing; the columns are t;a, 0;b, 1;c; try --delimiter ';'$"),
        ("timestamp\n2026-01-05T08:00:00Z\n", {}, "one column, 'timestamp'; it must have a time column"),
        (
            "a,b\n1,2\n",
            {},
            "column 'timestamp' is missing; the columns are a, b; set the time column with --time-column$",
        ),
        ("a,b\n1,2\n", {"time_column": "t"}, "column 't' is missing; the columns are a, b"),
        ("t,b\n2026-01-05T08:00:00Z,2\nyesterday,2\n", {"time_column": "t"}, "row 2: 'yesterday' is not a valid time"),
        ("t,b\n2026-01-05 08:00:00,1\n", {"time_column": "t"}, "row 1: .*--assume-zone"),
        ("timestamp,b\n2026-01-05T08:00:00Z,2\n3\n", {}, "row 2 has 1 cells; the header has 2"),
        ("a,a\n1,2\n", {}, "repeats a column"),
        ("t,timestamp\n1,2\n", {"time_column": "t"}, "does not store the column 'timestamp' as data"),
        ('timestamp,a\n"b\n', {}, "row 1 is not CSV"),
        ("", {}, "must be a header with the names of the columns"),
        (
            f"timestamp,deviceId\n2026-01-05T08:00:00Z,{'x' * 257}\n",
            {},
            "row 1: messageId and deviceId: must be a string of 1",
        ),
        (f"timestamp,a,b,c\n2026-01-05T08:00:00Z{f',{"x" * 100_000}' * 3}\n", {}, "row 1 is over 262144 bytes"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, file: dict[str, Any], message: str) -> None:
    """An invalid file is rejected with its column or row."""
    with pytest.raises(FileError, match=message):
        list(CsvFile(_file(tmp_path, text), RIG, **file).rows())


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Unreadable files are rejected by name."""
    with pytest.raises(FileError, match="not a regular file"):
        list(CsvFile(tmp_path, RIG).rows())
    with pytest.raises(FileError, match="No such file"):
        list(CsvFile(tmp_path / "nothing.csv", RIG).rows())
    (tmp_path / "latin.csv").write_bytes(b"a\n\xe9\n")
    with pytest.raises(FileError, match="not UTF-8"):
        list(CsvFile(tmp_path / "latin.csv", RIG).rows())


def test_own_ids(tmp_path: Path) -> None:
    """The columns messageId and deviceId override the command line."""
    (row,) = CsvFile(_file(tmp_path, f"timestamp,messageId,deviceId\n{TIME},7,8\n"), RIG, device="d").rows()
    assert json.loads(row.message) == {"messageId": "7", "deviceId": "8", "timestamp": "2026-01-05T08:00:00.000000Z"}
    assert row.moment == datetime(2026, 1, 5, 8, tzinfo=UTC)


def _target(**source: str) -> ReplayTarget:
    return ReplayTarget("rig", layout_from_source(Source.model_validate(source)))


@pytest.mark.parametrize("form", ["rfc3339", "epochSeconds", "epochMilliseconds"])
@given(moment=st.datetimes(timezones=st.just(UTC)))
def test_rows_fit_the_connection(tmp_path_factory: pytest.TempPathFactory, form: str, moment: datetime) -> None:
    """Messages have time, device and id at the connection's pointers."""
    target = _target(
        timestampPointer="/head/at",
        messageIdPointer="/head/id",
        deviceIdPointer="/a~1b",
        timestampFormat=form,
    )
    path = _file(tmp_path_factory.getbasetemp(), f"t,x,deviceId\n{moment.isoformat()},1,d\n")
    (row,) = CsvFile(path, target, time_column="t").rows()
    (message,) = parse_messages(json.loads(row.message), target.layout)
    assert (message.timestamp, message.message_id, message.device_id) == (moment, row.content, "d")
    assert json.loads(message.payload) == {"head": {}, "x": 1}


def test_columns_that_a_pointer_would_take(tmp_path: Path) -> None:
    """A column at a pointer is rejected, unless it is the time column."""
    path = _file(tmp_path, f"timestamp,ts\n{TIME},{TIME}\n")
    target = _target(timestampPointer="/ts")
    with pytest.raises(FileError, match="does not store the column 'ts' as data"):
        list(CsvFile(path, target).rows())
    (row,) = CsvFile(path, target, time_column="ts").rows()
    assert json.loads(row.message)["timestamp"] == TIME


@pytest.mark.parametrize(
    "source",
    [
        {"timestampPointer": ""},
        {"messageIdPointer": ""},
        {"deviceIdPointer": "/messageId"},
        {"deviceIdPointer": "/timestamp/a"},
    ],
)
def test_pointers_that_no_row_can_satisfy(source: dict[str, str]) -> None:
    """A connection with empty or overlapping pointers is rejected."""
    with pytest.raises(ReplayError, match=r"^rig: "):
        _target(**source)


def test_devices_need_a_pointer(tmp_path: Path) -> None:
    """A device id without a pointer is rejected."""
    path, target = _file(tmp_path, _numbers(1)), _target(deviceIdPointer="")
    assert len(list(CsvFile(path, target).rows())) == 1
    with pytest.raises(FileError, match="no pointer for the device id"):
        list(CsvFile(path, target, device="d").rows())


async def test_a_key_goes_to_the_running_host_only(tmp_path: Path, service: TargetService) -> None:
    """Nothing is sent to another process on the port of a stopped host."""
    local = LocalService(tmp_path)
    with pytest.raises(NoHostError, match="--url"):
        local.locate()
    with record_host(tmp_path, service.url):
        ended = local.locate()
        async with checked_session() as session:
            await TelemetryClient(session, local, "rig", KEY).probe()
    with record_host(tmp_path, service.url):
        assert local.locate().is_running()
        async with checked_session() as session:
            with pytest.raises(aiohttp.ClientConnectionError, match="has ended"):
                await session.get(service.url, headers={"Authorization": KEY}, trace_request_ctx=ended)
    assert service.requests == 1


async def test_a_host_that_comes_back_elsewhere_is_found(tmp_path: Path, service: TargetService) -> None:
    """A replay continues at the address of a new host."""
    local = LocalService(tmp_path)
    with record_host(tmp_path, "http://127.0.0.1:1"):
        assert local.locate().address == "http://127.0.0.1:1"
    with record_host(tmp_path, service.url):
        assert local.locate().address == service.url


async def test_a_service_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed port and a silent process fail the probe."""
    monkeypatch.setattr(replay_client, "_PROBE_TIMEOUT", aiohttp.ClientTimeout(total=0.05))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with checked_session() as session:
            for port in (silent.getsockname()[1], 1):
                with pytest.raises(ReplayError, match="does not respond"):
                    await TelemetryClient(session, RemoteService(f"http://127.0.0.1:{port}"), "rig", KEY).probe()


def test_default_key_file_is_in_the_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default key file is in DATA_DIR."""
    needed = ["rig.csv", "press.csv", "--connection", "rig", "--time-column", "t"]
    monkeypatch.setenv("DATA_DIR", "/srv/plant")
    assert replay.parse(needed).key_file == Path("/srv/plant/keys.json")
    assert replay.parse([*needed, "--key-file", "k.json"]).key_file == Path("k.json")
    monkeypatch.delenv("DATA_DIR")
    assert replay.parse(needed).key_file == Path(".data/keys.json")
    assert replay.parse([*needed, "--data-dir", "d"]).key_file == Path("d/keys.json")


def test_api_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is read from the environment, else from the key file."""
    monkeypatch.delenv("OI_API_KEY", raising=False)
    keys = tmp_path / "keys.json"
    with pytest.raises(ReplayError, match="cannot be read"):
        replay.read_api_key(keys, "editor")
    keys.write_text('{"editor": "k1"}')
    assert replay.read_api_key(keys, "editor") == "k1"
    with pytest.raises(ReplayError, match="no key of viewer"):
        replay.read_api_key(keys, "viewer")
    monkeypatch.setenv("OI_API_KEY", "k2")
    assert replay.read_api_key(keys, "viewer") == "k2"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--speed", "-1"],
        ["--batch", "501"],
        ["--batch", "x"],
        ["--delimiter", "ab"],
        ["--assume-zone", "Nowhere/X"],
        ["--timestamp-pointer", "ts"],
        ["--timestamp-format", "unix"],
    ],
)
def test_wrong_options(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid option exits with 2 and its name."""
    with pytest.raises(SystemExit) as caught:
        replay.main(["rig.csv", "--connection", "rig", *arguments])
    assert caught.value.code == 2
    assert arguments[0] in capsys.readouterr().err


async def test_command(
    tmp_path: Path, service: TargetService, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command prints a summary and exits with 0, or with 1 after an error; it never shows the key."""
    monkeypatch.setenv("OI_API_KEY", KEY)
    paths = [str(_file(tmp_path, _numbers(count), f"{count}/0.csv")) for count in (2, 3)]
    command = [*paths, "--connection", "rig", "--url", service.url]
    assert await asyncio.to_thread(replay.main, command) == 0
    assert capsys.readouterr().out.startswith("5 rows read, 3 accepted, 2 repeated, in ")
    sent = len(service.accepted)
    bad = str(_file(tmp_path, "a;b\n1;2\n", "bad.csv"))
    assert await asyncio.to_thread(replay.main, [paths[0], bad, *command[2:]]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert "bad.csv" in shown.err
    assert KEY not in shown.out + shown.err
    assert len(service.accepted) == sent


async def test_command_without_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a running host the command exits with 1 and a hint."""
    monkeypatch.setenv("OI_API_KEY", KEY)
    command = [str(_file(tmp_path, _numbers(1))), "--connection", "rig", "--data-dir", str(tmp_path)]
    assert await asyncio.to_thread(replay.main, command) == 1
    assert "make run" in capsys.readouterr().err
