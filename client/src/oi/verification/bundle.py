"""Verification of an audit bundle (zip file of audit chains) without the service: files, chains and proofs.

Like ``export``, this module needs only the standard library, ``cryptography`` and ``rfc8785``; receipts need ``cbor2``.
"""

import base64
import binascii
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from oi.counts import format_count
from oi.verification.bundle_files import BundleFiles
from oi.verification.bundle_receipts import (
    KEY_SET,
    find_receipt_file_names,
    group_receipts_by_chain,
    parse_keys_in_bundle,
    verify_receipts_and_describe_unknown_key,
)
from oi.verification.export import (
    AMENDMENTS,
    BrokenError,
    DecisionSignatures,
    describe_record_fault_or_empty,
    verify_export_and_count_records,
)
from oi.verification.hash_rule import get_record_time, sequence_from_record_id
from oi.verification.json_arrays import UnreadableError, iterate_json_objects
from oi.verification.manifest import MANIFEST, parse_json_file, parse_manifest
from oi.verification.merkle import is_included
from oi.verification.notes import (
    CheckpointContent,
    NoteError,
    OpenedCheckpoint,
    VerifierKey,
    describe_unknown_key,
    verify_and_parse_checkpoint,
)

VERIFIER_KEY: Final = "verifier-key.txt"
REPORT: Final = "report.html"
README: Final = "README.txt"
_WITHOUT_PROOFS: Final = (
    "the bundle has no proofs of these records: the service omits them if it finds the chain broken, or cannot compute "
    "them from the stored hashes; to learn the fault, verify the chain in the service, or request the bundle without "
    "filters"
)
_DIGEST_LINE: Final = re.compile(r"([0-9a-f]{64})  (\S+)")
_MAX_README_TEXT_BYTES: Final = 65_536
_MAX_DIGEST_LINE_BYTES: Final = 80
"""Maximum size of a line of the README file without the name in it: the digest has 64 characters."""


@dataclass(slots=True)
class BundleResult:
    """Result of the verification of a bundle.

    Attributes:
        lines: description of the bundle and of each chain.
        faults: descriptions of the faults; empty if the bundle and all its chains are valid.
        undecided: one reason for each chain that could not be verified completely although no fault was found.
    """

    lines: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _VerifierKeys:
    """Public keys of the workspace that verify the checkpoints and receipts of a bundle.

    Attributes:
        keys: the keys, at least one.
        are_from_bundle: True if the keys are those in the bundle, which must have signed all its checkpoints.
    """

    keys: Sequence[VerifierKey]
    are_from_bundle: bool

    @property
    def faultless_outcome(self) -> str:
        """Result for a chain without fault: "sound", or "agrees with itself" if the keys are only from the bundle."""
        return "agrees with itself" if self.are_from_bundle else "sound"

    def describe_signing_keys(self, opened_checkpoint: OpenedCheckpoint | None) -> str:
        """Return a description of the keys that signed a checkpoint; empty if there is no checkpoint."""
        if opened_checkpoint is None:
            return ""
        kind = "unconfirmed key" if self.are_from_bundle else "key"
        return "".join(f", signed by the {kind} with SHA-256 {key.fingerprint}" for key in opened_checkpoint.signers)


def verify_bundle(zip_path: Path, keys: Sequence[VerifierKey], expected_workspace: str | None = None) -> BundleResult:
    """Verify all files, chains, checkpoints and proofs of an audit bundle.

    Args:
        zip_path: the zip file.
        keys: trusted public keys of the workspace; empty to use the keys in the bundle.
        expected_workspace: id of the workspace to which the bundle must belong; None to accept any workspace.

    Raises:
        BrokenError: the bundle as a whole is damaged: one of its files, its manifest, or the key in it.
        OSError: the bundle's file cannot be read.
    """
    try:
        archive = zipfile.ZipFile(zip_path)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise BrokenError(zip_path.name, f"the bundle is not a readable zip file: {error}") from None
    with archive:
        return _verify_bundle_files(BundleFiles(archive), keys, expected_workspace)


def _verify_bundle_files(
    files: BundleFiles, keys: Sequence[VerifierKey], expected_workspace: str | None
) -> BundleResult:
    # Files that nothing lists are rejected before any large file is unpacked.
    manifest = _check_file_names_and_digests(files)
    if expected_workspace is not None and manifest["workspace"] != expected_workspace:
        raise BrokenError(
            MANIFEST, f"the bundle belongs to the workspace {manifest['workspace']}, not to {expected_workspace}"
        )
    enclosed = _parse_verifier_key(files[VERIFIER_KEY])
    result = BundleResult([f"workspace {manifest['workspace']}, created {manifest['createdAt']}"])
    verifiers = _VerifierKeys(
        keys or _list_distinct_keys(enclosed, parse_keys_in_bundle(files)), are_from_bundle=not keys
    )
    if verifiers.are_from_bundle:
        _report_enclosed_keys(verifiers.keys, result)
    if used := [f"{name}={_quote_text(value)}" for name, value in manifest["filters"].items() if value]:
        result.lines.append(f"filters according to the manifest, which is not signed: {', '.join(used)}")
    receipts = group_receipts_by_chain(files.keys())
    for number, entry in enumerate(manifest["chains"], start=1):
        _verify_chain_and_add_result(files, manifest, entry, verifiers, receipts.get(number, {}), result)
    result.lines.append(f"{REPORT} is not signed: it is not evidence, and may differ from the verified records")
    return result


def _list_distinct_keys(first_key: VerifierKey, others: Sequence[VerifierKey]) -> list[VerifierKey]:
    """Return ``first_key``, followed by the keys in ``others`` that differ from it."""
    return [first_key, *(other for other in others if other.spki != first_key.spki)]


def _report_enclosed_keys(keys: Sequence[VerifierKey], result: BundleResult) -> None:
    """Add the fingerprints of the bundle's own keys to the result, and a warning that these keys prove nothing."""
    for key in keys:
        name = f"{key.name} of {VERIFIER_KEY}" if key.name else f"of {KEY_SET}"
        result.lines.append(f"enclosed key {name}, SHA-256 {key.fingerprint}: key not independently confirmed")
    result.lines.append(
        "anyone can make a bundle that agrees with its own keys; pass the verifier key from another source with --key"
    )


def _check_file_names_and_digests(files: BundleFiles) -> dict[str, Any]:
    """Compare the files with the README file, which lists their digests, and with the manifest; return the manifest."""
    for name in (MANIFEST, VERIFIER_KEY, REPORT, README):
        if name not in files:
            raise BrokenError(name, "the bundle does not contain this file")
    digests = _read_listed_digests(files)
    for name in sorted(files.keys() - digests.keys() - {README}):
        raise BrokenError(name, _describe_unlisted_or_missing_file(name, files, README))
    _check_file_digest(files, MANIFEST, digests)
    manifest = parse_manifest(files[MANIFEST])
    _check_file_names(files, manifest)
    for name in sorted(files.keys() - {MANIFEST, README}):
        _check_file_digest(files, name, digests)
    return manifest


def _read_listed_digests(files: BundleFiles) -> dict[str, str]:
    """Return the digests in the README file by the names of the files."""
    digests: dict[str, str] = {}
    # The file is read before its own digest is known, so its size must be plausible.
    max_bytes = _MAX_README_TEXT_BYTES + sum(len(name.encode()) + _MAX_DIGEST_LINE_BYTES for name in files)
    for line in files.iterate_lines(README, max_bytes):
        found = _DIGEST_LINE.fullmatch(line.decode("utf-8", "replace").rstrip("\r\n"))
        if found is None:
            continue
        if found[2] not in files:
            raise BrokenError(found[2], _describe_unlisted_or_missing_file(found[2], files, README))
        digests[found[2]] = found[1]
    return digests


def _check_file_digest(files: BundleFiles, name: str, digests: Mapping[str, str]) -> None:
    if files.compute_sha256(name) != digests[name]:
        raise BrokenError(name, f"the file differs from its digest in {README}")


def _describe_unlisted_or_missing_file(file_name: str, files: Mapping[str, bytes], listing_name: str) -> str:
    """Return the error message for a file that is only in the bundle, or only in the list of files in ``listing_name``.

    Args:
        file_name: name of the file.
        files: content of each file in the bundle, by name.
        listing_name: name of the file in the bundle that contains the list, such as the manifest.
    """
    if file_name in files:
        return f"the bundle contains this file, but {listing_name} does not list it"
    return f"{listing_name} lists this file, but the bundle does not contain it"


def _check_file_names(files: Mapping[str, bytes], manifest: Mapping[str, Any]) -> None:
    """Check that the bundle contains exactly the files that its manifest names, and those that every bundle has."""
    named = {MANIFEST, VERIFIER_KEY, REPORT, README} | find_receipt_file_names(files, len(manifest["chains"]))
    for entry in manifest["chains"]:
        named |= {entry[name] for name in ("file", "checkpoint", "proof") if entry[name] is not None}
    for name in sorted(named ^ files.keys()):
        raise BrokenError(name, _describe_unlisted_or_missing_file(name, files, MANIFEST))


def _parse_verifier_key(content: bytes) -> VerifierKey:
    try:
        return VerifierKey.parse(content.decode())
    except (NoteError, UnicodeDecodeError) as error:
        raise BrokenError(VERIFIER_KEY, str(error)) from None


class _ChainRecords:
    """Records of one chain in a bundle: each iteration parses the chain's file record by record.

    Args:
        files: files of the bundle.
        chain_entry: the chain's entry in the manifest.
        are_hashes_stored: True to store the ``Hash`` of each record.

    Attributes:
        count: number of records that were read.
        last: the last record that was read; None before the first.
        hashes: ``Hash`` of each record by RecordID; empty if they are not stored.
    """

    def __init__(self, files: BundleFiles, chain_entry: Mapping[str, Any], *, are_hashes_stored: bool) -> None:
        self._files = files
        self._entry = chain_entry
        self._are_hashes_stored = are_hashes_stored
        self.count = 0
        self.last: Mapping[str, Any] | None = None
        self.hashes: dict[str, str] = {}

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Parse the records.

        Raises:
            BrokenError: the file is not an export, or contains another number of records than the manifest states.
        """
        expected = self._entry["records"]
        for record in _iterate_objects_of_file(self._files, self._entry["file"]):
            self.count, self.last = self.count + 1, record
            if self.count > expected:
                break
            if self._are_hashes_stored:
                self.hashes[str(record.get("RecordID"))] = str(record.get("Hash"))
            yield record
        if self.count != expected:
            more = "more than " if self.count > expected else ""
            counted = format_count(min(self.count, expected), "record")
            raise BrokenError(self._entry["file"], f"the file has {more}{counted}; the manifest counts {expected}")


def _iterate_objects_of_file(files: BundleFiles, name: str) -> Iterator[dict[str, Any]]:
    """Parse a file with a JSON array of objects, object by object.

    Raises:
        BrokenError: the file has other content.
    """
    try:
        yield from iterate_json_objects(files.iterate_parts(name))
    except (UnreadableError, UnicodeDecodeError) as error:
        raise BrokenError(name, str(error)) from None


def _verify_chain_and_add_result(
    files: BundleFiles,
    manifest: Mapping[str, Any],
    chain_entry: Mapping[str, Any],
    verifiers: _VerifierKeys,
    receipts_by_record_id: Mapping[str, str],
    result: BundleResult,
) -> None:
    """Verify the audit chain of one manifest entry, and add the outcome to the result of the bundle."""
    scope = f" {_quote_text(chain_entry['scopeKey'])}" if chain_entry["scopeKey"] else ""
    name = f"{chain_entry['file']} ({chain_entry['target']}{scope})"
    try:
        opened = _find_and_verify_checkpoint(files, manifest, chain_entry, verifiers)
        checkpoint = opened.content if opened else None
        records = _ChainRecords(files, chain_entry, are_hashes_stored=bool(receipts_by_record_id))
        if chain_entry["complete"]:
            agreement = _verify_and_describe_complete_chain(files, manifest, chain_entry, records, checkpoint)
            line = f"{verifiers.faultless_outcome}: {agreement}" if records.count else "empty: no records"
        else:
            line = _verify_and_describe_filtered_chain(files, manifest, chain_entry, records, checkpoint)
        receipt_doubt = verify_receipts_and_describe_unknown_key(
            files, receipts_by_record_id, records.hashes, checkpoint, verifiers.keys
        )
    except BrokenError as error:
        result.faults.append(f"{name}: broken at {error.broken_at}: {error}")
        return
    except ValueError as error:
        # For instance, a name has an unpaired surrogate. No chain may hide the faults of the others.
        result.faults.append(f"{name}: broken at {chain_entry['file']}: {error}")
        return
    except Exception as error:  # noqa: BLE001  an unexpected error must not look like a broken chain
        result.undecided.append(f"{name}: {type(error).__name__}: {error}")
        return
    if opened and opened.unknown_key:
        result.undecided.append(f"{name}: {describe_unknown_key(opened.unknown_key)}")
        return
    if checkpoint is None:
        consequence = "" if records.count else ", so nothing proves that it has no records"
        result.undecided.append(f"{name}: the bundle contains no signed checkpoint of this chain{consequence}")
    elif not records.count:
        result.undecided.append(f"{name}: the bundle contains no record of this chain, so nothing was verified")
    elif checkpoint.size < records.count:
        result.undecided.append(f"{name}: the checkpoint covers only {checkpoint.size} of {records.count} records")
    if receipt_doubt:
        result.undecided.append(f"{name}: the receipts were not verified: {receipt_doubt}")
    result.lines.append(f"{name}: {line}{verifiers.describe_signing_keys(opened)}")


def _quote_text(text: str) -> str:
    """Quote a text for output; if any character is not printable, escape all non-ASCII characters."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _find_and_verify_checkpoint(
    files: Mapping[str, bytes], manifest: Mapping[str, Any], chain_entry: Mapping[str, Any], verifiers: _VerifierKeys
) -> OpenedCheckpoint | None:
    """Verify and return a chain's checkpoint; None if the bundle contains none.

    Raises:
        BrokenError: the checkpoint is invalid, or the caller passed no keys and no key in the bundle signed it.
    """
    name = chain_entry["checkpoint"]
    if name is None:
        return None
    chain = manifest["workspace"], chain_entry["target"], chain_entry["scopeKey"] or ""
    try:
        opened = verify_and_parse_checkpoint(files[name], verifiers.keys, *chain)
    except NoteError as error:
        raise BrokenError(name, str(error)) from None
    if opened.unknown_key and verifiers.are_from_bundle:
        raise BrokenError(name, f"the bundle does not contain the key {opened.unknown_key} that signed the checkpoint")
    return opened


def _verify_and_describe_complete_chain(
    files: BundleFiles,
    manifest: Mapping[str, Any],
    chain_entry: Mapping[str, Any],
    records: _ChainRecords,
    checkpoint: CheckpointContent | None,
) -> str:
    """Verify a whole chain of a bundle, and compare the outcome with the verification result in the manifest.

    Return a text for the output, with the number of records and the number of records that the checkpoint covers.
    """
    verdict = chain_entry["verdict"]
    scope = chain_entry["scopeKey"] or ""
    count = verify_export_and_count_records(records, manifest["workspace"], chain_entry["target"], scope, checkpoint)
    if not verdict["ChainValid"]:
        raise BrokenError(str(verdict["BrokenAt"]), f"the service found a fault: {verdict['Reason']}")
    if verdict["Empty"] != (count == 0):
        raise BrokenError(
            MANIFEST, f"the manifest states Empty {verdict['Empty']}, but the file has {format_count(count, 'record')}"
        )
    if chain_entry["proof"] is not None:
        proof = parse_json_file(chain_entry["proof"], files[chain_entry["proof"]])
        if records.last is None:
            raise BrokenError(chain_entry["proof"], "the bundle contains a proof, but the chain has no records")
        _check_inclusion_proof(chain_entry["proof"], proof, records.last, checkpoint)
    return format_count(count, "record") + (f", checkpoint of {checkpoint.size} agrees" if checkpoint else "")


def _verify_and_describe_filtered_chain(
    files: BundleFiles,
    manifest: Mapping[str, Any],
    chain_entry: Mapping[str, Any],
    records: _ChainRecords,
    checkpoint: CheckpointContent | None,
) -> str:
    """Verify a chain of which the bundle contains only the records that match filters.

    Each record must be valid and match the filters. If there is a checkpoint, a Merkle proof in the bundle must show
    that the checkpoint covers the record. Return a description of the verified records for the output.
    """
    if checkpoint is not None and chain_entry["proof"] is None:
        raise BrokenError(chain_entry["file"], _WITHOUT_PROOFS)
    proofs = iter(()) if checkpoint is None else _iterate_objects_of_file(files, chain_entry["proof"])
    last, filters, signatures = 0, manifest["filters"], DecisionSignatures(is_complete=False)
    for record in records:
        here = str(record.get("RecordID"))
        sequence = sequence_from_record_id(record.get("RecordID")) or 0
        reason = describe_record_fault_or_empty(record) or _describe_filter_mismatch_or_empty(record, filters)
        if sequence <= last:
            reason = reason or f"{here} is not after the record before it"
        if reason:
            raise BrokenError(here, reason)
        if checkpoint is not None:
            proof = next(proofs, None)
            if proof is None:
                raise BrokenError(chain_entry["proof"], "the file has fewer proofs than records")
            _check_inclusion_proof(chain_entry["proof"], proof, record, checkpoint)
        if chain_entry["target"] == AMENDMENTS:
            signatures.add_record(record)
        last = sequence
    if next(proofs, None) is not None:
        raise BrokenError(chain_entry["proof"], "the file has more proofs than records")
    signatures.check()
    filtered = format_count(records.count, "filtered record")
    if checkpoint is None or not records.count:
        return filtered
    return f"the checkpoint of {checkpoint.size} covers {filtered}; completeness is not verified"


def _describe_filter_mismatch_or_empty(record: Mapping[str, Any], filters: Mapping[str, Any]) -> str:
    """Describe the filter that a record does not match; return an empty string if the record matches all filters."""
    here, time = record.get("RecordID"), get_record_time(record)
    if filters["startDate"] and time < filters["startDate"]:
        return f"{here} is before startDate"
    if filters["endDate"] and time > filters["endDate"]:
        return f"{here} is after endDate"
    if filters["entityId"] and record.get("EntityID") != filters["entityId"]:
        return f"{here} has another EntityID"
    return ""


def _check_inclusion_proof(
    proof_file_name: str, proof: Any, record: Mapping[str, Any], checkpoint: CheckpointContent | None
) -> None:
    """Check that a Merkle proof in the bundle proves that the checkpoint covers a record.

    Raises:
        BrokenError: the proof is invalid.
    """
    here = str(record.get("RecordID"))
    if checkpoint is None:
        raise BrokenError(proof_file_name, "the bundle contains a proof but no checkpoint")
    try:
        index, size = proof["leafIndex"], proof["size"]
        path = [base64.b64decode(each, validate=True) for each in proof["hashes"]]
        leaf = bytes.fromhex(record["Hash"])
    except (TypeError, KeyError, ValueError, binascii.Error):
        raise BrokenError(proof_file_name, f"the proof of {here} is malformed") from None
    is_shape = proof.keys() == {"leafIndex", "size", "hashes"} and type(index) is int and type(size) is int
    if not is_shape or index + 1 != sequence_from_record_id(here) or size != checkpoint.size:
        raise BrokenError(proof_file_name, f"the proof of {here} is for another record or checkpoint")
    if not is_included(leaf, index, size, path, checkpoint.root):
        raise BrokenError(proof_file_name, f"the checkpoint does not cover {here}")
