"""``python -m shared.provenance.verify``: verify an exported chain without the service.

It needs only the standard library, ``cryptography`` and ``rfc8785``. The exit status is 0 if the chain is valid, 1 if
it is broken (with the position), and 2 if it could not be verified.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shared.provenance.fetch import FetchError, checkpoint_path, fetch
from shared.provenance.hash_rule import record_time
from shared.provenance.notes import CheckpointContent, NoteError, VerifierKey, find_signer, open_checkpoint, origin_of
from shared.provenance.offline import BrokenError, UnreadableError, load, verify

SOUND, BROKEN, UNDECIDED = 0, 1, 2
TARGETS = ("PlatformConfig", "AccessControl", "DomainEvents", "DomainAmendments")


def main(arguments: list[str]) -> int:
    """Verify an export, or download one if the first argument is ``fetch``; return the exit status."""
    try:
        if arguments[:1] == ["fetch"]:
            return _fetch(_build_fetch_parser().parse_args(arguments[1:]))
        return _verify(_build_parser().parse_args(arguments))
    except Exception as error:  # noqa: BLE001  an unexpected error must not look like a broken chain
        return _report_undecided(f"{type(error).__name__}: {error}")


def _verify(options: argparse.Namespace) -> int:
    if options.key is None and options.checkpoint is not None:
        return _report_undecided("--checkpoint requires --key, the line that verifies its signature")
    try:
        checkpoint = _load_checkpoint(options)
    except NoteError as error:
        return _report_broken("checkpoint", str(error))
    except (OSError, ValueError) as error:
        return _report_undecided(str(error))
    try:
        records = load(Path(options.export).read_text(encoding="utf-8-sig"))
        count = verify(records, options.workspace, options.target, options.scope, checkpoint)
    except BrokenError as error:
        return _report_broken(error.broken_at, str(error))
    except (OSError, UnicodeDecodeError, UnreadableError) as error:
        return _report_undecided(str(error))
    against = f", checkpoint of {checkpoint.size} agrees" if checkpoint else ", compared with no checkpoint"
    _print(f"sound: {count} records{against}" if count else f"empty: no records{against}")
    _warn_future_time(records)
    return SOUND if count else UNDECIDED


def _warn_future_time(records: Sequence[Mapping[str, Any]]) -> None:
    """Print a note if the time of the last record is in the future: that clock or this one may be wrong."""
    last = record_time(records[-1]) if records else ""
    if last > datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds"):
        sys.stderr.write(f"note: the last record's time, {last}, is ahead of this computer's clock\n")


def _load_checkpoint(options: argparse.Namespace) -> CheckpointContent | None:
    """Load the checkpoint with which the export is compared; None without the option ``--key``.

    Raises:
        NoteError: if the key did not sign the checkpoint, or it belongs to another chain.
        ValueError: if the key is invalid.
        OSError: if a file cannot be read.
    """
    if options.key is None:
        return None
    keys = _parse_keys(Path(options.key).read_text(encoding="utf-8") if Path(options.key).is_file() else options.key)
    saved = checkpoint_path(Path(options.export))
    if options.checkpoint is None and not saved.exists():
        raise ValueError(f"no signed checkpoint: fetch saves one as {saved}; otherwise name one with --checkpoint")
    note = Path(options.checkpoint or saved).read_bytes()
    origin = origin_of(options.workspace, options.target, options.scope)
    return open_checkpoint(note, find_signer(note, keys) or keys[0], origin)


def _parse_keys(text: str) -> list[VerifierKey]:
    """Parse verifier keys, one a line: the current one and retired ones.

    Raises:
        ValueError: if a key is invalid, or the text is empty.
    """
    try:
        return [VerifierKey.parse(line) for line in text.strip().splitlines() or [""]]
    except NoteError as error:
        raise ValueError(str(error)) from None


def _fetch(options: argparse.Namespace) -> int:
    token = os.environ.get(options.token_variable, "")
    if not token:
        return _report_undecided(f"the environment variable {options.token_variable} contains no token")
    try:
        fetched = fetch(options.url, token, options.target, options.scope, Path(options.out))
    except (FetchError, OSError) as error:
        return _report_undecided(str(error))
    _print(f"{fetched.count} records in {options.out}\n{fetched.checkpoint}")
    return SOUND


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m shared.provenance.verify", description=__doc__)
    parser.add_argument("export", help="JSON export of the whole chain, oldest first")
    parser.add_argument("--workspace", required=True, help="id of the workspace")
    _add_chain_arguments(parser)
    parser.add_argument("--key", help="verifier key from /.well-known/oi-checkpoint-key, or a file with it")
    parser.add_argument("--checkpoint", help="file with a signed checkpoint of the chain (EXPORT.checkpoint)")
    return parser


def _build_fetch_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m shared.provenance.verify fetch")
    parser.add_argument("url", help="address of the service")
    parser.add_argument("--out", required=True, help="file to write")
    parser.add_argument("--token-variable", default="OI_TOKEN", help="environment variable with a bearer token")
    _add_chain_arguments(parser)
    return parser


def _add_chain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", required=True, choices=TARGETS, help="container of the chain")
    parser.add_argument("--scope", default="", help="scope key of a domain chain")


def _report_broken(where: str, reason: str) -> int:
    _print(f"broken at {where}: {reason}")
    return BROKEN


def _report_undecided(reason: str) -> int:
    sys.stderr.write(f"cannot tell: {reason}\n")
    return UNDECIDED


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
