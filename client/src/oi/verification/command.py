"""``oi verify-file``: verify an exported chain, or an audit bundle, without the service.

The command needs only the standard library, ``cryptography`` and ``rfc8785``, and ``cbor2`` for receipts. The exit
status is 0 if the chain is valid, 1 if it is broken (with the position), and 2 if it could not be verified.
"""

import argparse
import os
import re
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from oi.control_characters import escape_controls
from oi.counts import format_count
from oi.verification.bundle import verify_bundle
from oi.verification.export import (
    BrokenError,
    parse_export,
    parse_record_or_export,
    verify_export_and_count_records,
)
from oi.verification.fetch import (
    FetchError,
    GetToken,
    SignedInService,
    build_checkpoint_path,
    download_chain_and_checkpoint,
)
from oi.verification.hash_rule import get_record_time
from oi.verification.json_arrays import UnreadableError
from oi.verification.key_sets import parse_verifier_keys
from oi.verification.notes import (
    CheckpointContent,
    NoteError,
    VerifierKey,
    build_key_name,
    describe_unknown_key,
    verify_and_parse_checkpoint,
)

ExitCode: TypeAlias = int
SOUND, BROKEN, UNDECIDED = 0, 1, 2
_WITHOUT_CHECKPOINT = ", compared with no checkpoint: records cut off at the end cannot be noticed"
_CHAIN_NAME = re.compile(
    r"(?P<workspace>oi-provenance/[^/]+)"
    r"/(?P<target>PlatformConfig|AccessControl|DomainEvents|DomainAmendments)(?:/(?P<scope>[^/]+))?"
)
"""Name of a chain, as :func:`build_checkpoint_origin` builds it; a scope may have the name of a target."""
TARGETS = ("PlatformConfig", "AccessControl", "DomainEvents", "DomainAmendments")
_SCOPED_TARGETS = ("DomainEvents", "DomainAmendments")


SignIn = Callable[[str | None], SignedInService]
"""Function that returns the address of a service and a function that returns tokens for it.

Its argument is the address; None stands for the service of the stored login.
"""


class _LoadedCheckpoint(NamedTuple):
    """Checkpoint with which an export is compared.

    Attributes:
        content: content of the checkpoint; None without the option ``--key``.
        doubt: reason why its signature could not be verified; empty if the signature is valid, or if there is no
            checkpoint.
    """

    content: CheckpointContent | None
    doubt: str


def main(arguments: list[str], sign_in: SignIn | None = None) -> ExitCode:
    """Verify an exported chain, an audit bundle or a receipt; if the first argument is ``fetch``, download a chain.

    Return the exit status: 0 if all is valid, 1 if something is broken, 2 if it could not be verified.

    Args:
        arguments: arguments of the command line.
        sign_in: returns the address of a service and a function that returns tokens. ``fetch`` calls it if the
            arguments contain no address, or the environment contains no token. If it is None, both are required.
    """
    try:
        if arguments[:1] == ["fetch"]:
            return _run_fetch_command(_build_fetch_parser().parse_args(arguments[1:]), sign_in)
        parser = _build_verify_parser()
        options = parser.parse_args(arguments)
        if options.receipt or options.record:
            return _verify_receipt(parser, options)
        if options.export is None:
            parser.error("an export or a bundle is required, or --receipt and --record")
        if not Path(options.export).exists():
            return _report_undecided_result(f"{options.export} does not exist")
        if _is_bundle(Path(options.export)):
            return _verify_bundle(parser, options)
        _check_chain_options(parser, options)
        return _verify_exported_chain(options)
    except Exception as error:  # noqa: BLE001  an unexpected error must not look like a broken chain
        return _report_undecided_result(f"{type(error).__name__}: {error}")


def _check_chain_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the options that identify a chain; exit with 2 if one is missing or a scope does not fit the target.

    With such options, every export would look like a broken chain.
    """
    for name in ("workspace", "target"):
        if getattr(options, name) is None:
            parser.error(f"--{name} is required, except for a bundle")
    if options.target in _SCOPED_TARGETS and not options.scope:
        parser.error(f"--scope is required with --target {options.target}")
    if options.target not in _SCOPED_TARGETS and options.scope:
        parser.error(f"--scope is not used with --target {options.target}, the chain of the whole workspace")


def _is_bundle(path: Path) -> bool:
    """Return whether a file is an audit bundle; a damaged bundle is recognised by its file name."""
    return path.suffix.lower() == ".zip" or zipfile.is_zipfile(path)


def _verify_bundle(parser: argparse.ArgumentParser, options: argparse.Namespace) -> ExitCode:
    """Verify an audit bundle and print the result for each chain; return the exit status."""
    for name in ("target", "scope", "checkpoint"):
        if getattr(options, name):
            parser.error(f"--{name} is not used with a bundle, which names its chains and contains their checkpoints")
    try:
        keys = [] if options.key is None else _load_verifier_keys(options.key)
        result = verify_bundle(Path(options.export), keys, options.workspace)
    except BrokenError as error:
        return _report_broken_chain(error.broken_at, str(error))
    except (OSError, ValueError) as error:
        return _report_undecided_result(str(error))
    for line in (*result.lines, *result.faults):
        _print_escaped_line(line)
    if result.faults:
        return BROKEN
    for reason in result.undecided:
        _report_undecided_result(reason)
    return UNDECIDED if result.undecided else SOUND


def _verify_receipt(parser: argparse.ArgumentParser, options: argparse.Namespace) -> ExitCode:
    """Verify one record with its receipt, which proves that a signed checkpoint covers it; return the exit status."""
    from oi.verification.receipts import ReceiptError, UnknownKeyError, parse_receipt, verify_record_by_receipt  # noqa: PLC0415

    for name in ("receipt", "record", "key"):
        if getattr(options, name) is None:
            parser.error(f"--{name} is required to verify a record by its receipt")
    if options.export is not None or options.checkpoint is not None:
        parser.error("--receipt verifies one record; pass no export, bundle or checkpoint with it")
    try:
        keys, content = _load_verifier_keys(options.key), Path(options.receipt).read_bytes()
        records = parse_record_or_export(Path(options.record).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, UnreadableError) as error:
        return _report_undecided_result(_describe_read_error(options.record, error))
    try:
        receipt = parse_receipt(content)
        # Before the signature, so that an unknown key does not hide the wrong chain.
        _check_receipt_subject(receipt.subject, options)
        verify_record_by_receipt(receipt, _get_record_or_first(records, receipt.record_id), keys)
    except UnknownKeyError as error:
        return _report_undecided_result(str(error))
    except ReceiptError as error:
        return _report_broken_chain("the receipt", str(error))
    except BrokenError as error:
        return _report_broken_chain(error.broken_at, str(error))
    _print_escaped_line(f"sound: {receipt.record_id} of {format_count(receipt.size, 'record')} is in {receipt.subject}")
    _print_escaped_line(f"signed by {receipt.issuer} with the key {receipt.key_id.hex()}; the size is not signed")
    return SOUND


def _get_record_or_first(records: Sequence[Mapping[str, Any]], record_id: str) -> Mapping[str, Any]:
    """Return the record with this RecordID.

    If no record has it, return the first record, so that the error message of the verification can name a record.

    Raises:
        BrokenError: several records have this RecordID, so that a forged one would seem to be proven.
    """
    found = [record for record in records if record.get("RecordID") == record_id]
    if len(found) > 1:
        raise BrokenError(record_id, f"the file contains {len(found)} records with this RecordID")
    return found[0] if found else records[0]


def _check_receipt_subject(subject: str, options: argparse.Namespace) -> None:
    """Check that a receipt belongs to the workspace, target and scope in the options.

    Options that are not set are ignored.

    Raises:
        ReceiptError: the receipt belongs to another workspace, target or scope.
    """
    from oi.verification.receipts import ReceiptError  # noqa: PLC0415

    found = _CHAIN_NAME.fullmatch(subject)
    named = {
        "workspace": None if options.workspace is None else build_key_name(options.workspace),
        "target": options.target,
        "scope": quote(options.scope, safe="") or None,
    }
    for part, expected in named.items():
        if expected is not None and (found is None or found[part] != expected):
            raise ReceiptError(f"the receipt belongs to {subject}, not to the {part} {expected}")


def _verify_exported_chain(options: argparse.Namespace) -> ExitCode:
    """Verify the export of one chain, and compare it with a checkpoint if a key is given; return the exit status."""
    if options.key is None and options.checkpoint is not None:
        return _report_undecided_result("--checkpoint requires --key, the line that verifies its signature")
    try:
        checkpoint, checkpoint_doubt = _load_checkpoint(options)
    except NoteError as error:
        return _report_broken_chain("checkpoint", str(error))
    except (OSError, ValueError) as error:
        return _report_undecided_result(str(error))
    try:
        records = parse_export(Path(options.export).read_text(encoding="utf-8-sig"))
        verify_export_and_count_records(records, options.workspace, options.target, options.scope, checkpoint)
    except BrokenError as error:
        return _report_broken_chain(error.broken_at, str(error))
    except (OSError, UnicodeDecodeError, UnreadableError) as error:
        return _report_undecided_result(_describe_read_error(options.export, error))
    return (
        _report_undecided_result(checkpoint_doubt) if checkpoint_doubt else _report_sound_records(records, checkpoint)
    )


def _describe_read_error(records_path: str, error: Exception) -> str:
    """Describe why a file cannot be read; the path of the file with records precedes errors about its content."""
    if isinstance(error, UnicodeDecodeError):
        return f"{records_path} is not UTF-8 text"
    return f"{records_path}: {error}" if isinstance(error, UnreadableError) else str(error)


def _report_sound_records(records: Sequence[Mapping[str, Any]], checkpoint: CheckpointContent | None) -> ExitCode:
    """Print that the records of an export are valid; return the exit status: 0, or 2 if there are no records."""
    count = len(records)
    against = _describe_checkpoint_coverage(checkpoint, count) if checkpoint else _WITHOUT_CHECKPOINT
    _print_escaped_line(f"sound: {format_count(count, 'record')}{against}" if count else f"empty: no records{against}")
    _warn_about_future_time(records)
    return SOUND if count else UNDECIDED


def _describe_checkpoint_coverage(checkpoint: CheckpointContent, record_count: int) -> str:
    """Describe how many of an export's records a checkpoint covers; it cannot cover records that are newer than it."""
    agrees = f", checkpoint of {checkpoint.size} agrees"
    if checkpoint.size >= record_count:
        return agrees
    return f"{agrees}: nothing signed covers the last {record_count - checkpoint.size}, which could have been rewritten"


def _warn_about_future_time(records: Sequence[Mapping[str, Any]]) -> None:
    """Print a note if the last record's time is in the future: the service's clock or the local clock may be wrong."""
    last = get_record_time(records[-1]) if records else ""
    if last > datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds"):
        sys.stderr.write(f"note: the last record's time, {escape_controls(last)}, is ahead of this computer's clock\n")


def _load_checkpoint(options: argparse.Namespace) -> _LoadedCheckpoint:
    """Load the checkpoint with which the export is compared.

    Raises:
        NoteError: as :func:`verify_and_parse_checkpoint`.
        ValueError: the key is invalid, or no file with a checkpoint is given or found.
        OSError: a file cannot be read.
    """
    if options.key is None:
        return _LoadedCheckpoint(None, "")
    keys = _load_verifier_keys(options.key)
    saved = build_checkpoint_path(Path(options.export))
    if options.checkpoint is None and not saved.exists():
        raise ValueError(
            f"there is no signed checkpoint at {saved}, where `oi audit fetch` saves it; "
            "pass its path with --checkpoint"
        )
    note = Path(options.checkpoint or saved).read_bytes()
    chain = options.workspace, options.target, options.scope
    opened = verify_and_parse_checkpoint(note, keys, *chain)
    return _LoadedCheckpoint(opened.content, describe_unknown_key(opened.unknown_key) if opened.unknown_key else "")


def _load_verifier_keys(key_option: str) -> list[VerifierKey]:
    """Load the keys of the option ``--key``: a verifier key line, or a file with such lines, COSE_KeySet or JWK set.

    Raises:
        ValueError: a key is invalid.
        OSError: the file cannot be read.
    """
    if Path(key_option).is_file():
        return parse_verifier_keys(Path(key_option).read_bytes())
    try:
        return parse_verifier_keys(key_option.encode())
    except ValueError as error:
        raise ValueError(f"--key {key_option!r} is neither an existing file nor a verifier key: {error}") from None


def _run_fetch_command(options: argparse.Namespace, sign_in: SignIn | None) -> ExitCode:
    """Download a chain for the command ``fetch`` and print the result; return the exit status."""
    url, token = options.url, os.environ.get(options.token_variable, "")
    get_token: GetToken | None = (lambda _is_rejected: token) if token else None
    try:
        if sign_in is not None and not (url and get_token):
            service = sign_in(url)
            url, get_token = url or service.url, get_token or service.get_token
        if not url:
            return _report_undecided_result("the address of the service is missing")
        if get_token is None:
            return _report_undecided_result(f"the environment variable {options.token_variable} contains no token")
        fetched = download_chain_and_checkpoint(url, get_token, options.target, options.scope, Path(options.out))
    except (FetchError, OSError) as error:
        if sign_in is None:
            return _report_undecided_result(str(error))
        # The command `oi` has its own exit codes; the verifier alone has none for a refused request.
        sys.stderr.write(f"error: {escape_controls(str(error))}\n")
        return getattr(error, "exit_status", 1)
    _print_escaped_line(f"{format_count(fetched.count, 'record')} in {fetched.output}")
    _print_escaped_line(fetched.checkpoint)
    for contradiction in fetched.contradictions:
        _print_escaped_line(f"contradiction: {contradiction}; keep both files as evidence")
    return BROKEN if fetched.contradictions else SOUND


def _build_verify_parser() -> argparse.ArgumentParser:
    parser = _create_argument_parser(
        "oi verify-file",
        __doc__,
        "oi verify-file line-1.json --workspace plant-a --target DomainEvents --scope line-1",
        "oi verify-file line-1.json --workspace plant-a --target DomainEvents --scope line-1 --key checkpoint-key",
        "oi verify-file bundle.zip --key checkpoint-key",
        "oi verify-file --receipt receipt.txt --record record.json --key checkpoint-key",
    )
    parser.add_argument("export", nargs="?", help="JSON export of the whole chain, oldest first, or an audit bundle")
    parser.add_argument("--workspace", help="id of the workspace; optional for a bundle")
    _add_chain_arguments(parser, required=False)
    parser.add_argument(
        "--key", help="verifier key from /.well-known/oi-checkpoint-key, or a file with it, or with the set of all keys"
    )
    parser.add_argument("--checkpoint", help="file with a signed checkpoint of the chain (EXPORT.checkpoint)")
    parser.add_argument("--receipt", help="receipt of one record; requires --record and --key")
    parser.add_argument("--record", help="file with the record as JSON, or with an export that contains it")
    return parser


def _build_fetch_parser() -> argparse.ArgumentParser:
    parser = _create_argument_parser(
        "oi audit fetch",
        "Download a whole chain and its newest checkpoint for `oi verify-file`, with the login of `oi login`, or with\n"
        "OI_KEY or OI_TOKEN.",
        "oi audit fetch --target AccessControl --out access.json",
        "oi audit fetch https://plant.example --target DomainEvents --scope line-1 --out line-1.json",
    )
    parser.add_argument("url", nargs="?", help="address of the service; default: that of the login")
    parser.add_argument("--out", required=True, help="file to write")
    parser.add_argument("--token-variable", default="OI_TOKEN", help="environment variable with a bearer token")
    _add_chain_arguments(parser)
    return parser


def _create_argument_parser(program_name: str, description: str | None, *examples: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=program_name,
        description=description,
        epilog="\n".join(("Examples:", *(f"  {example}" for example in examples))),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_chain_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument("--target", required=required, choices=TARGETS, help="container of the chain")
    parser.add_argument("--scope", default="", help="scope key of a domain chain")


def _report_broken_chain(place: str, reason: str) -> ExitCode:
    """Print that the chain is broken, with the place (such as a RecordID) and the reason; return the exit status 1."""
    _print_escaped_line(f"broken at {place}: {reason}")
    return BROKEN


def _report_undecided_result(reason: str) -> ExitCode:
    """Print the reason why the verification could not be completed; return the exit status 2."""
    sys.stderr.write(f"cannot tell: {escape_controls(reason)}\n")
    return UNDECIDED


def _print_escaped_line(text: str) -> None:
    """Print a line of text; control characters, and characters that the terminal cannot show, are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(escape_controls(text).encode(encoding, "backslashreplace").decode(encoding) + "\n")
