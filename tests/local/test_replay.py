"""Replaying CSV files over HTTP, against a service that is one in every respect that matters here."""

import asyncio
import json
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

from local import replay
from local.replay import Counter, Pace
from local.replay_client import TelemetryClient
from local.replay_error import ReplayError
from local.replay_rows import CsvFile, FileError

KEY = "oik_abcdefgh_secret"


class Service:
    """Issues tokens for the key, takes telemetry, and fails as told."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.accepted: list[str] = []
        self.arrays: list[int] = []
        self.tokens = 0
        self.failures: list[web.Response | None] = []
        self.url = ""

    async def token(self, request: web.Request) -> web.Response:
        """Issue a token."""
        if request.headers["Authorization"] != f"Bearer {KEY}":
            return web.json_response({"code": "UNAUTHORIZED", "detail": "Unknown key."}, status=401)
        assert request.query["scopes"] == "Workspace.Telemetry.Write"
        self.tokens += 1
        return web.json_response({"Token": f"t{self.tokens}", "ExpiresAt": "2026-01-01T00:00:00Z"})

    async def telemetry(self, request: web.Request) -> web.Response:
        """Take an array, or fail as told: None drops the connection after taking it."""
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
async def service() -> AsyncIterator[Service]:
    """A service on a port of its own."""
    made = Service()
    app = web.Application(client_max_size=2**20)
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
    path.write_text(text, encoding="utf-8")
    return path


async def _replay(file: CsvFile, service: Service, pace: Pace | None = None, key: str = KEY) -> int:
    async with aiohttp.ClientSession() as session:
        client = TelemetryClient(session, service.url, "rig", key, first_wait=0.001)
        return await replay.replay(file.rows(), client, pace or Pace(), Counter())


async def test_rows_become_messages(tmp_path: Path, service: Service) -> None:
    """Numbers stay as written, empty cells are left out, the time column becomes the timestamp, text stays text."""
    text = (
        "ts;Pressure;State;Note;Big\n"
        "2026-01-05 08:00:00;1.50;on;;18446744073709551617\n"
        "2026-01-05T09:00:00+01:00;007;;a b;1e5\n"
    )
    file = CsvFile(_file(tmp_path, text), ";", "ts", UTC, "rig-1")
    assert await _replay(file, service) == 2
    assert list(service.messages.values()) == [
        {
            "messageId": "rig-1",
            "deviceId": "rig-1",
            "timestamp": "2026-01-05T08:00:00.000000Z",
            "Pressure": Decimal("1.50"),
            "State": "on",
            "Big": 18446744073709551617,
        },
        {
            "messageId": "rig-2",
            "deviceId": "rig-1",
            "timestamp": "2026-01-05T08:00:00.000000Z",
            "Pressure": "007",
            "Note": "a b",
            "Big": Decimal("1e5"),
        },
    ]


@given(st.decimals(allow_nan=False, allow_infinity=False).map(str) | st.text(st.characters(codec="utf-8")))
def test_any_cell(tmp_path_factory: pytest.TempPathFactory, cell: str) -> None:
    """Any cell becomes JSON: a number with its own digits where it is one, else the same text."""
    quoted = cell.replace('"', '""')
    path = _file(tmp_path_factory.getbasetemp(), "")
    path.write_bytes(f'v,w\n"{quoted}",1\n'.encode())
    (row,) = CsvFile(path).rows()
    value = json.loads(row.message, parse_float=str, parse_int=str).get("v")
    assert value == (cell if cell.strip() else None) or value == cell.strip()


async def test_replaying_twice_changes_nothing(tmp_path: Path, service: Service) -> None:
    """Ids depend on the file and the row, so a second replay sends the same messages."""
    file = CsvFile(_file(tmp_path, "a\n" + "".join(f"{number}\n" for number in range(1200))))
    assert await _replay(file, service, Pace(batch=100)) == 1200
    first = dict(service.messages)
    assert await _replay(file, service, Pace(batch=500, concurrency=1)) == 1200
    assert service.messages == first
    assert len(first) == 1200
    assert service.arrays == [100] * 12 + [500, 500, 200]


def _busy(**headers: str) -> web.Response:
    return web.json_response({"code": "THROTTLED"}, status=429, headers=headers)


async def test_failures_on_the_way(tmp_path: Path, service: Service) -> None:
    """Throttling, an outage and a connection dropped after the service took the rows are all got over."""
    file = CsvFile(_file(tmp_path, "a\n" + "1\n" * 40))
    service.failures = [_busy(**{"Retry-After": "0"}), web.Response(status=503), None, _busy()]
    assert await _replay(file, service, Pace(batch=10, concurrency=2)) == 40
    assert set(service.messages) == {f"rig-{number}" for number in range(1, 41)}
    assert len(service.accepted) == 50


async def test_token_refresh(tmp_path: Path, service: Service) -> None:
    """A token that is refused is replaced once, by one that all requests share."""
    file = CsvFile(_file(tmp_path, "a\n" + "1\n" * 40))
    rejected = web.json_response({"code": "UNAUTHORIZED"}, status=401)
    service.failures = [web.Response(), rejected]
    assert await _replay(file, service, Pace(batch=10, concurrency=1)) == 40
    assert service.tokens == 2


async def test_refusals_end_the_replay(tmp_path: Path, service: Service) -> None:
    """What the service refuses ends the replay with its reason and the rows; an unknown key says so without the key."""
    file = CsvFile(_file(tmp_path, "a\n" + "1\n" * 40))
    service.failures = [
        web.Response(),
        web.json_response({"code": "CONNECTION_DISABLED", "detail": "It is disabled."}, status=409),
    ]
    with pytest.raises(ReplayError, match=r"^rows 11 to 20: 409 CONNECTION_DISABLED It is disabled\.$"):
        await _replay(file, service, Pace(batch=10, concurrency=1))
    with pytest.raises(ReplayError, match=r"^no token for the API key: 401 UNAUTHORIZED Unknown key\.$"):
        await _replay(file, service, key="oik_wrong")


async def test_gives_up(tmp_path: Path, service: Service) -> None:
    """A service that is down for ten attempts ends the replay."""
    service.failures = [_busy(**{"Retry-After": "0"}) for _ in range(10)]
    with pytest.raises(ReplayError, match="after 10 attempts: 429 THROTTLED"):
        await _replay(CsvFile(_file(tmp_path, "a\n1\n")), service)


async def test_wide_rows(tmp_path: Path, service: Service) -> None:
    """Batches stay below the size of body that the service takes."""
    file = CsvFile(_file(tmp_path, "a,b\n" + f"1,{'x' * 100_000}\n" * 30))
    assert await _replay(file, service) == 30
    assert max(service.arrays) == 8


async def test_pace(tmp_path: Path) -> None:
    """With a speed, rows that are due together travel together, and the others wait."""
    text = "timestamp\n" + "".join(f"2026-01-05T08:00:{second:02d}Z\n" for second in (0, 0, 1, 30, 30))
    file = CsvFile(_file(tmp_path, text))
    started = asyncio.get_running_loop().time()
    found = [[row.number for row in batch] async for batch in replay.batches(file.rows(), Pace(speed=100))]
    assert found == [[1, 2, 3], [4, 5]]
    assert asyncio.get_running_loop().time() - started >= 0.29


async def test_pace_needs_times(tmp_path: Path) -> None:
    """A speed without a time column is refused."""
    with pytest.raises(ReplayError, match="--time-column"):
        [batch async for batch in replay.batches(CsvFile(_file(tmp_path, "a\n1\n")).rows(), Pace(speed=1))]


@pytest.mark.parametrize(
    ("text", "file", "message"),
    [
        ("a;b\n1;2\n", {"time_column": "t"}, r"no column 't'.*is the delimiter ';'\?"),
        ("a,b\n1,2\n", {"time_column": "t"}, "there are a, b"),
        ("t,b\n2026-01-05T08:00:00Z,2\nyesterday,2\n", {"time_column": "t"}, "row 2: 'yesterday' is no time"),
        ("t\n2026-01-05 08:00:00\n", {"time_column": "t"}, "row 1: .*--assume-zone"),
        ("a,b\n1,2\n3\n", {}, "row 2 has 1 cells, the header 2"),
        ("a,a\n1,2\n", {}, "names a column twice"),
        ("t,timestamp\n1,2\n", {"time_column": "t"}, "'timestamp' would be taken"),
        ('a\n"b\n', {}, "row 1 is not CSV"),
        ("", {"time_column": "t"}, "no column 't'"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, file: dict[str, Any], message: str) -> None:
    """A file that is not what was said is refused with the column or the row that is wrong."""
    with pytest.raises(FileError, match=message):
        list(CsvFile(_file(tmp_path, text), **file).rows())


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, and one that is no UTF-8, are refused by name."""
    with pytest.raises(FileError, match="No such file"):
        list(CsvFile(tmp_path / "nothing.csv").rows())
    (tmp_path / "latin.csv").write_bytes(b"a\n\xe9\n")
    with pytest.raises(FileError, match="not UTF-8"):
        list(CsvFile(tmp_path / "latin.csv").rows())


def test_own_ids(tmp_path: Path) -> None:
    """A file's own columns messageId and deviceId count, as texts, before what the command line says."""
    (row,) = CsvFile(_file(tmp_path, "messageId,deviceId\n7,8\n"), device="d").rows()
    assert json.loads(row.message) == {"messageId": "7", "deviceId": "8"}
    assert row.moment is None


def test_times(tmp_path: Path) -> None:
    """A column ``timestamp`` is the time without being named."""
    (row,) = CsvFile(_file(tmp_path, "timestamp\n2026-01-05T08:00:00Z\n")).rows()
    assert row.moment == datetime(2026, 1, 5, 8, tzinfo=UTC)


def test_keys_are_looked_for_where_the_host_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key file is that of DATA_DIR, unless another is named."""
    needed = ["rig.csv", "--connection", "rig", "--time-column", "t"]
    monkeypatch.setenv("DATA_DIR", "/srv/plant")
    assert replay.parse(needed).key_file == Path("/srv/plant/keys.json")
    assert replay.parse([*needed, "--key-file", "k.json"]).key_file == Path("k.json")
    monkeypatch.delenv("DATA_DIR")
    assert replay.parse(needed).key_file == Path(".data/keys.json")


def test_api_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key comes from the environment, else from the key file's entry of the principal."""
    monkeypatch.delenv("OI_API_KEY", raising=False)
    keys = tmp_path / "keys.json"
    with pytest.raises(ReplayError, match="cannot be read"):
        replay.api_key(keys, "editor")
    keys.write_text('{"editor": "k1"}')
    assert replay.api_key(keys, "editor") == "k1"
    with pytest.raises(ReplayError, match="no key of viewer"):
        replay.api_key(keys, "viewer")
    monkeypatch.setenv("OI_API_KEY", "k2")
    assert replay.api_key(keys, "viewer") == "k2"


@pytest.mark.parametrize(
    "arguments",
    [["--speed", "-1"], ["--batch", "501"], ["--batch", "x"], ["--delimiter", "ab"], ["--assume-zone", "Nowhere/X"]],
)
def test_wrong_options(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong option ends with 2 and its name."""
    with pytest.raises(SystemExit) as caught:
        replay.main(["rig.csv", "--connection", "rig", *arguments])
    assert caught.value.code == 2
    assert arguments[0] in capsys.readouterr().err


async def test_command(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command sums up what was accepted and ends with 0; an error ends with 1, and neither shows the key."""
    monkeypatch.setenv("OI_API_KEY", KEY)
    path = _file(tmp_path, "a\n1\n2\n")
    command = [str(path), "--connection", "rig", "--url", service.url]
    assert await asyncio.to_thread(replay.main, command) == 0
    assert capsys.readouterr().out.startswith("2 rows accepted in ")
    assert await asyncio.to_thread(replay.main, [*command, "--time-column", "t"]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert KEY not in shown.out + shown.err
