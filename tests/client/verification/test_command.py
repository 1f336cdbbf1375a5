"""Tests of the command line of the offline verifier."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from oi.verification.command import main
from oi.verification.fetch import FetchError
from oi.verification.notes import VerifierKey, build_key_name

from shared.backends.embedded.key_files import rotate_checkpoint_key
from shared.provenance.hash_rule import LAST_SEQUENCE, format_record_id
from shared.provenance.ports import Filters
from shared.provenance.queries import export_records
from shared.provenance.records import build_event_draft, seal_record
from tests.unit.shared.provenance.chains import BATCH, PLATFORM, WORKSPACE, Ledger, build_event, open_ledger

ROOT = Path(__file__).parents[3]
OPTIONS = ["--workspace", WORKSPACE, "--target", "PlatformConfig"]
ALLOWED = {"oi", "cryptography", "rfc8785", "_cffi_backend"}
TOKEN = "secret-token"
UNCHECKED = "compared with no checkpoint: records cut off at the end cannot be noticed"


@pytest.fixture(autouse=True)
def _skip_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the pauses between the attempts to reach a service."""
    monkeypatch.setattr("oi.verification.fetch.sleep", lambda _seconds: None)


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Return two chains, whose exports are in the files ``export.json`` and ``batch.json``."""
    async with open_ledger(tmp_path) as opened:
        for chain, name in ((PLATFORM, "export.json"), (BATCH, "batch.json")):
            await opened.fill(chain, 5)
            (tmp_path / name).write_bytes((await export_records(opened.store, chain, Filters())).to_json_array())
        yield opened


@pytest.mark.usefixtures("ledger")
def test_the_verifier_imports_only_three_libraries(tmp_path: Path) -> None:
    """The command imports only cryptography, rfc8785 and the standard library."""
    program = (
        "import sys; from oi.verification.command import main; status = main(sys.argv[1:]); "
        "names = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names); "
        "print(sorted(name for name in names if not name.startswith('_'))); sys.exit(status)"
    )
    command = [sys.executable, "-S", "-c", program, str(tmp_path / "export.json"), *OPTIONS]
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}/client/src:{packages}"},
        capture_output=True,
        text=True,
        check=False,
    )
    sound, loaded = done.stdout.splitlines()
    assert (done.returncode, sound) == (0, f"sound: 5 records, {UNCHECKED}")
    assert set(json.loads(loaded.replace("'", '"'))) - {"sitecustomize", "usercustomize"} <= ALLOWED


async def test_the_verifier_requires_only_two_libraries(ledger: Ledger, tmp_path: Path) -> None:
    """The provenance package verifies an export in a folder with only two libraries."""
    made = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert made is not None
    (tmp_path / "note").write_bytes(made.note)
    (tmp_path / "key").write_text(str(await ledger.checkpoints.load_verifier_key()))
    alone = _copy_verifier_and_its_libraries(tmp_path / "alone")
    command = [sys.executable, "-S", "-m", "oi.verification", str(tmp_path / "export.json"), *OPTIONS]
    command += ["--key", str(tmp_path / "key"), "--checkpoint", str(tmp_path / "note")]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=alone, env={"PYTHONPATH": str(alone)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "sound: 5 records, checkpoint of 5 agrees\n"), done.stderr
    probe = [sys.executable, "-S", "-c", "import pydantic"]
    other = await asyncio.to_thread(subprocess.run, probe, cwd=alone, env={"PYTHONPATH": str(alone)}, check=False)
    assert other.returncode == 1


def _copy_verifier_and_its_libraries(folder: Path) -> Path:
    """Create a folder that contains only the verifier and its two libraries."""
    folder.mkdir()
    (folder / "oi").symlink_to(ROOT / "client" / "src" / "oi")
    packages = Path(next(path for path in sys.path if path.endswith("site-packages")))
    for package in (*packages.glob("_cffi_backend*"), packages / "cryptography", packages / "rfc8785"):
        (folder / package.name).symlink_to(package)
    return folder


@pytest.mark.usefixtures("ledger")
def test_a_chain_is_valid_under_its_scope_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verifier accepts an exported chain only under the chain's own scope."""
    options = ["--workspace", WORKSPACE, "--target", "DomainEvents", "--scope"]
    assert main([str(tmp_path / "batch.json"), *options, BATCH.scope_key]) == 0
    assert main([str(tmp_path / "batch.json"), *options, "batch/8"]) == 1
    assert "broken at 000000000001: 000000000001 does not link to the genesis hash" in capsys.readouterr().out


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize(
    ("target", "scope", "message"),
    [
        ("DomainEvents", [], "--scope is required with --target DomainEvents"),
        ("DomainAmendments", ["--scope", ""], "--scope is required with --target DomainAmendments"),
        ("PlatformConfig", ["--scope", "batch"], "--scope is not used with --target PlatformConfig"),
    ],
)
def test_a_missing_or_needless_scope_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, scope: list[str], message: str
) -> None:
    """If the target requires a scope and none is given, or the reverse, the verifier gives no verdict but status 2."""
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "batch.json"), "--workspace", WORKSPACE, "--target", target, *scope])
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert (shown.out, message in shown.err) == ("", True)


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("content", ["", "{}", "[1]", '[{"a":1,"a":2}]', "[NaN", '"x"', "[" * 100_000])
def test_invalid_exports_have_no_verdict(tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    """If a file is not an export, the verifier prints its name but no verdict, and ends with status 2."""
    (tmp_path / "bad.json").write_text(content)
    assert main([str(tmp_path / "bad.json"), *OPTIONS]) == 2
    assert capsys.readouterr().err.startswith(f"cannot tell: {tmp_path / 'bad.json'}: the file is not ")


@pytest.mark.usefixtures("ledger")
def test_unusable_files_and_keys_have_no_verdict(tmp_path: Path) -> None:
    """If a file is missing, a key is invalid or options are incomplete, the verifier ends with status 2."""
    file = str(tmp_path / "export.json")
    assert main([str(tmp_path / "none.json"), *OPTIONS]) == 2
    assert main([file, *OPTIONS, "--key", "x"]) == 2
    assert main([file, *OPTIONS, "--checkpoint", file]) == 2
    assert main([file, *OPTIONS, "--key", "x", "--checkpoint", file]) == 2


@pytest.mark.parametrize("name", ["none.json", "none.zip"])
def test_a_missing_file_is_reported_before_missing_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The error about a file that does not exist names the file, whichever options are set."""
    missing = str(tmp_path / name)
    assert main([missing]) == 2
    assert capsys.readouterr().err == f"cannot tell: {missing} does not exist\n"


class _Service(BaseHTTPRequestHandler):
    records: dict[int, dict[str, Any]]
    note: object
    refusal: int

    def do_GET(self) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.send_error(401)
            return
        if urlsplit(self.path).path.endswith("/checkpoint"):
            self._send_checkpoint()
            return
        window = range(int(query["fromSequence"]), int(query.get("toSequence", "1000000000000")) + 1)
        found = [record for place, record in self.records.items() if place in window]
        # Two records per page, like pages that are limited by their size.
        body = json.dumps(found[::-1][:2]).encode()
        self.send_response(200)
        self.send_header("x-provenance-has-more", "true" if len(found) > 2 else "false")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_checkpoint(self) -> None:
        if self.refusal:
            self.send_error(self.refusal)
            return
        body = json.dumps({"signedNote": self.note}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write no server log."""


@pytest.fixture
def address(tmp_path: Path, ledger: Ledger) -> Iterator[str]:
    """Start a fake service that returns the records of the first chain, and return its address."""
    _Service.records = dict(enumerate(json.loads((ledger.folder / "export.json").read_text()), start=1))
    _Service.note, _Service.refusal = None, 404
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_fetch_writes_a_chain_into_one_export(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All pages of a chain are written to one valid export, even if the service returns short pages."""
    out = str(tmp_path / "fetched.json")
    monkeypatch.setenv("OI_TOKEN", TOKEN)
    assert main(["fetch", address, "--target", "PlatformConfig", "--out", out]) == 0
    assert main([out, *OPTIONS]) == 0
    assert "sound: 5 records" in capsys.readouterr().out


def test_a_failed_fetch_writes_no_file(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a chain cannot be downloaded, no file is written, and the exit status is 2."""
    out = tmp_path / "fetched.json"
    monkeypatch.delenv("OI_TOKEN", raising=False)
    assert main(["fetch", address, "--target", "PlatformConfig", "--out", str(out)]) == 2
    monkeypatch.setenv("OI_TOKEN", "wrong")
    for url in (address, "http://127.0.0.1:1", "file:///etc"):
        assert main(["fetch", url, "--target", "PlatformConfig", "--out", str(out)]) == 2
    assert not out.exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1", "cannot reach the service: "),
        ("http://127.0.0.1:port", "is not a valid address; expected https:// and a host name"),
    ],
)
def test_fetch_distinguishes_an_unreachable_service_from_an_invalid_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str, message: str
) -> None:
    """The error says whether the service did not respond or the address is invalid."""
    monkeypatch.setenv("OI_TOKEN", TOKEN)
    assert main(["fetch", url, "--target", "PlatformConfig", "--out", str(tmp_path / "fetched.json")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("record_id", ["000000000001", "999999999999", 5, None])
@pytest.mark.parametrize("index", [1, 5])
def test_fetch_ignores_record_ids(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, index: int, record_id: object
) -> None:
    """The download succeeds whatever RecordIDs the records have."""
    _Service.records[index] |= {"RecordID": record_id}
    sound = record_id == format_record_id(index)
    out = tmp_path / "fetched.json"
    monkeypatch.setenv("OI_TOKEN", TOKEN)
    assert main(["fetch", address, "--target", "PlatformConfig", "--out", str(out)]) == 0
    assert len(json.loads(out.read_text())) == 5
    assert main([str(out), *OPTIONS]) == (0 if sound else 1)


def test_fetch_continues_after_a_gap(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a long gap the download continues, so that the verifier can report the gap."""
    _Service.records[LAST_SEQUENCE] = _Service.records.pop(4)
    out = tmp_path / "fetched.json"
    monkeypatch.setenv("OI_TOKEN", TOKEN)
    assert main(["fetch", address, "--target", "PlatformConfig", "--out", str(out)]) == 0
    assert [record["RecordID"][-1] for record in json.loads(out.read_text())] == ["1", "2", "3", "5", "4"]
    assert main([str(out), *OPTIONS]) == 1


def test_fetch_does_not_print_tokens(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error about a token with invalid characters does not contain the token."""
    monkeypatch.setenv("OI_TOKEN", f"{TOKEN}\n")
    assert main(["fetch", address, "--target", "PlatformConfig", "--out", str(tmp_path / "fetched.json")]) == 2
    assert TOKEN not in capsys.readouterr().err


@pytest.mark.usefixtures("ledger")
def test_one_record_is_named_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The result of a chain with one record says "1 record"."""
    file = tmp_path / "export.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8"))[:1]), encoding="utf-8")
    assert main([str(file), *OPTIONS]) == 0
    assert capsys.readouterr().out == f"sound: 1 record, {UNCHECKED}\n"


async def test_the_verifier_warns_of_a_record_with_a_future_time(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A chain whose last record has a future time is valid; a warning contains this time."""
    file = tmp_path / "export.json"
    assert main([str(file), *OPTIONS]) == 0
    assert capsys.readouterr().err == ""
    tip = await ledger.store.read_tip(PLATFORM)
    made = seal_record(build_event_draft("u", build_event(6)), 6, "2999-01-01T00:00:00.000000Z", tip.hash, "ahead")
    await ledger.store.append(PLATFORM, [made], tip)
    file.write_bytes((await export_records(ledger.store, PLATFORM, Filters())).to_json_array())
    assert main([str(file), *OPTIONS]) == 0
    said = capsys.readouterr()
    assert said.out == f"sound: 6 records, {UNCHECKED}\n"
    assert said.err.startswith("note: the last record's time, 2999-01-01T00:00:00.000000Z, is ahead")


@pytest.mark.usefixtures("ledger")
def test_an_unexpected_error_has_another_exit_status_than_a_broken_chain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After an unexpected error the exit status is 2, because 1 states that the chain is broken."""
    assert main([str(tmp_path / "batch.json"), *OPTIONS[:3], "DomainEvents", "--scope", "\udcff"]) == 2
    assert capsys.readouterr().err.startswith("cannot tell: ")


@pytest.fixture
async def fetch_and_verify_commands(
    ledger: Ledger, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], list[str]]:
    """Download a chain with its newest checkpoint; return the download command and the verification command."""
    made = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert made is not None
    _Service.note, _Service.refusal = made.note.decode(), 0
    monkeypatch.setenv("OI_TOKEN", TOKEN)
    out = str(tmp_path / "fetched.json")
    fetch = ["fetch", address, "--target", "PlatformConfig", "--out", out]
    assert main(fetch) == 0
    return fetch, [out, *OPTIONS, "--key", str(await ledger.checkpoints.load_verifier_key())]


def test_the_saved_checkpoint_is_used_by_default(
    tmp_path: Path, fetch_and_verify_commands: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """By default a chain is compared with the saved checkpoint, which reveals removed and changed records."""
    _, verify = fetch_and_verify_commands
    out = tmp_path / "fetched.json"
    assert (tmp_path / "fetched.json.checkpoint").read_text() == _Service.note
    assert main(verify) == 0
    assert "sound: 5 records, checkpoint of 5 agrees" in capsys.readouterr().out
    records = json.loads(out.read_text())
    out.write_text(json.dumps(records[:3]))
    assert main(verify) == 1
    assert "000000000004 is missing" in capsys.readouterr().out
    assert main(verify[:-2]) == 0


def test_a_checkpoint_of_an_unknown_key_has_no_verdict(
    tmp_path: Path, fetch_and_verify_commands: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """If an unknown key signed the checkpoint, the exit status is 2, but 1 if the checkpoint does not match."""
    _, verify = fetch_and_verify_commands
    out = tmp_path / "fetched.json"
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    unknown = VerifierKey(build_key_name(WORKSPACE), key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    capsys.readouterr()
    assert main([*verify[:-1], str(unknown)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, "states the unknown key" in printed.err) == ("", True)
    out.write_text(json.dumps(json.loads(out.read_text())[:3]))
    assert main([*verify[:-1], str(unknown)]) == 1


async def test_a_chain_rewritten_after_its_checkpoint_is_detected(
    fetch_and_verify_commands: tuple[list[str], list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A chain that was rewritten with valid hashes contradicts its checkpoint."""
    _, verify = fetch_and_verify_commands
    async with open_ledger(tmp_path / "second") as second:
        await second.fill(PLATFORM, 5)
        (tmp_path / "fetched.json").write_bytes(
            (await export_records(second.store, PLATFORM, Filters())).to_json_array()
        )
    assert main(verify[:-2]) == 0
    assert main(verify) == 1
    assert "the checkpoint was signed for other records than those in the export" in capsys.readouterr().out


@pytest.mark.usefixtures("ledger")
def test_a_missing_checkpoint_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If no checkpoint is saved, the error contains the path of the file in which it is expected."""
    key = (ROOT / "tests" / "vectors" / "proofs.json").read_text()
    assert main([str(tmp_path / "export.json"), *OPTIONS, "--key", json.loads(key)["verifierKey"]]) == 2
    error = capsys.readouterr().err
    assert f"there is no signed checkpoint at {tmp_path}/export.json.checkpoint" in error


@pytest.mark.parametrize("refusal", [404, 409])
async def test_a_saved_checkpoint_is_replaced_only_by_a_newer_checkpoint(
    ledger: Ledger,
    fetch_and_verify_commands: tuple[list[str], list[str]],
    refusal: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A saved checkpoint stays if the service returns no checkpoint or an older checkpoint."""
    fetch, verify = fetch_and_verify_commands
    first = str(_Service.note)
    _Service.refusal = refusal
    assert main(fetch) == 0
    assert "the existing checkpoint in" in capsys.readouterr().out
    assert main(verify) == 0
    _Service.refusal = 0
    await ledger.fill(PLATFORM, 2)
    await serve_chain(ledger)
    assert main(fetch) == 0
    assert main(verify) == 0
    assert "checkpoint of 7 agrees" in capsys.readouterr().out
    _Service.note = first
    assert main(fetch) == 0
    assert "still has the one of 7" in capsys.readouterr().out
    assert main(verify) == 0


async def serve_chain(ledger: Ledger) -> None:
    """Let the fake service return the chain PLATFORM of a ledger with its newest checkpoint."""
    made = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert made is not None
    _Service.note = made.note.decode()
    exported = (await export_records(ledger.store, PLATFORM, Filters())).to_json_array()
    _Service.records = dict(enumerate(json.loads(exported), 1))


def read_evidence(folder: Path) -> list[bytes]:
    """Return the contents of the fetched export and of its checkpoint."""
    return [(folder / name).read_bytes() for name in ("fetched.json", "fetched.json.checkpoint")]


@pytest.mark.parametrize("count", [4, 5, 9])
async def test_fetch_replaces_no_file_that_the_service_contradicts(
    fetch_and_verify_commands: tuple[list[str], list[str]],
    tmp_path: Path,
    count: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If the service returns another history, the earlier files stay, and the new ones are stored with a suffix.

    This holds for a checkpoint of fewer, as many or more records. A third history gets files of its own, too.
    """
    fetch, verify = fetch_and_verify_commands
    before = read_evidence(tmp_path)
    for name in ("second", "third"):
        async with open_ledger(tmp_path / name) as other:
            await other.fill(PLATFORM, count)
            await serve_chain(other)
        capsys.readouterr()
        for _ in range(2):
            assert main(fetch) == 1
        assert "contradiction: " in capsys.readouterr().out
        assert read_evidence(tmp_path) == before
    assert main(verify) == 0
    histories = [(tmp_path / f"fetched.json{suffix}").read_text() for suffix in ("", ".new", ".new.new")]
    assert len(set(histories)) == 3
    notes = [(tmp_path / f"fetched.json{suffix}.checkpoint").read_text() for suffix in ("", ".new", ".new.new")]
    assert len(set(notes)) == 3
    assert not (tmp_path / "fetched.json.new.new.new").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda: _Service.records.pop(5), "the service has 4 records, but"),
        (lambda: _Service.records[2].update(EntityID="x"), "record 2 in"),
        (lambda: setattr(_Service, "records", {}), "the service has 0 records, but"),
    ],
)
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_an_earlier_export_is_evidence(
    fetch_and_verify_commands: tuple[list[str], list[str]],
    tmp_path: Path,
    change: Callable[[], object],
    reason: str,
    capsys: pytest.CaptureFixture[str],
    *,
    has_checkpoint: bool,
) -> None:
    """An export is not replaced by records that change it or are fewer, also without a checkpoint."""
    fetch, _ = fetch_and_verify_commands
    if not has_checkpoint:
        (tmp_path / "fetched.json.checkpoint").unlink()
        _Service.refusal = 404
    before = (tmp_path / "fetched.json").read_bytes()
    change()
    assert main(fetch) == 1
    assert reason in capsys.readouterr().out
    assert (tmp_path / "fetched.json").read_bytes() == before
    assert (tmp_path / "fetched.json.new").exists()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("/PlatformConfig\n", "/AccessControl\n", "that of the service to"),
        ("\n5\n", "\n4\n", "was made for other records than it returned"),
        ("\n5\n", "\n6\n", "was made for other records than it returned"),
    ],
)
def test_a_checkpoint_that_contradicts_its_records_replaces_none(
    fetch_and_verify_commands: tuple[list[str], list[str]],
    tmp_path: Path,
    old: str,
    new: str,
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A checkpoint is not replaced by one of another chain, or one that the fetched records contradict."""
    fetch, _ = fetch_and_verify_commands
    before = read_evidence(tmp_path)
    _Service.note = str(_Service.note).replace(old, new)
    assert main(fetch) == 1
    assert reason in capsys.readouterr().out
    assert read_evidence(tmp_path) == before
    assert (tmp_path / "fetched.json.new.checkpoint").read_text() == _Service.note


def test_a_checkpoint_of_the_same_size_replaces_no_signature(
    fetch_and_verify_commands: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    """A saved checkpoint gets further signatures, but is not replaced by one that lacks its signature."""
    fetch, verify = fetch_and_verify_commands
    saved, signed = tmp_path / "fetched.json.checkpoint", str(_Service.note)
    text, _, signature = signed.rpartition("\n\n")
    _Service.note = f"{text}\n\n{signature[:-10]}AAAAAAAAA\n"
    assert main(fetch) == 0
    assert saved.read_text() == signed
    _Service.note = f"{signed}\u2014 other-key AAAAAAAA\n"
    assert main(fetch) == 0
    assert saved.read_text() == _Service.note
    assert main(verify) == 0


def test_fetch_replaces_an_empty_file_only(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty file is replaced; a file that is not an export stays, because it cannot be compared."""
    monkeypatch.setenv("OI_TOKEN", TOKEN)
    for content, status in (("", 0), ("text", 1), ("{}", 1)):
        out = tmp_path / f"file{len(content)}"
        out.write_text(content)
        assert main(["fetch", address, "--target", "PlatformConfig", "--out", str(out)]) == status
        assert (out.read_text() == content) == (status == 1)
    assert "is not an export" in capsys.readouterr().out


@pytest.mark.parametrize("note", [None, 5, "", "text", "origin\nx\nroot\n\n", "origin\n5\n"])
def test_an_invalid_checkpoint_is_not_saved(
    fetch_and_verify_commands: tuple[list[str], list[str]], note: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a downloaded checkpoint is invalid, neither the checkpoint nor its chain is saved."""
    fetch, verify = fetch_and_verify_commands
    _Service.note = note
    assert main(fetch) == 2
    assert "is not a checkpoint" in capsys.readouterr().err
    assert main(verify) == 0


async def test_checkpoints_of_retired_keys_are_valid(
    ledger: Ledger, fetch_and_verify_commands: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    """A checkpoint whose key was retired is valid if the key file contains that key."""
    _, verify = fetch_and_verify_commands
    rotate_checkpoint_key(tmp_path / "checkpoint-key.pem")
    new = str(await ledger.checkpoints.load_verifier_key())
    assert main([*verify[:-1], new]) == 2
    (tmp_path / "keys").write_text(f"{new}\n{verify[-1]}\n")
    assert main([*verify[:-1], str(tmp_path / "keys")]) == 0


@pytest.mark.usefixtures("ledger")
def test_printed_texts_do_not_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters in texts of the service or of an export are escaped."""

    def raise_error(_url: str | None) -> NoReturn:
        raise FetchError("refused\x1b[2J")

    assert main(["fetch", "--target", "AccessControl", "--out", str(tmp_path / "out.json")], raise_error) == 1
    export = tmp_path / "export.json"
    export.write_text(json.dumps([{"RecordID": "\x1b[2J"}]))
    assert main([str(export), *OPTIONS]) != 0
    assert main([str(tmp_path / "none\x1b[2J"), *OPTIONS]) == 2
    printed = capsys.readouterr()
    assert "error: refused\\x1b[2J\n" in printed.err
    assert "\x1b" not in printed.out + printed.err


def test_the_error_about_a_missing_key_file_contains_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the value of --key is neither a file nor a key, the error contains this value."""
    missing = str(tmp_path / "missing.key")
    (tmp_path / "export.json").write_text("[]")
    assert main([str(tmp_path / "export.json"), *OPTIONS, "--key", missing, "--checkpoint", "x"]) == 2
    assert f"--key {missing!r} is neither an existing file nor a verifier key" in capsys.readouterr().err
