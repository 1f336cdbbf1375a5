"""Verification of the receipts in an audit bundle; a receipt proves that a checkpoint covers a record."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from oi.verification.export import BrokenError
from oi.verification.key_sets import parse_cose_key_set
from oi.verification.notes import CheckpointContent, VerifierKey

KEY_SET: Final = "verifier-key.cbor"
_NAME: Final = re.compile(r"receipts/([1-9][0-9]{0,5})/([0-9]{12})\.cbor")


def group_receipts_by_chain(file_names: Iterable[str]) -> dict[int, dict[str, str]]:
    """Find the receipts in a bundle, and group their file names by chain and record.

    Args:
        file_names: names of the bundle's files.

    Returns:
        For each number of a chain in the manifest (from 1), the file names of its receipts by RecordID.
    """
    groups: dict[int, dict[str, str]] = {}
    for name in file_names:
        if found := _NAME.fullmatch(name):
            groups.setdefault(int(found[1]), {})[found[2]] = name
    return groups


def find_receipt_file_names(file_names: Collection[str], chain_count: int) -> set[str]:
    """Return the names of the files in a bundle that contain receipts, or the public keys that verify the receipts.

    Args:
        file_names: names of the bundle's files.
        chain_count: number of chains in the bundle.
    """
    found = (_NAME.fullmatch(name) for name in file_names)
    names = {name[0] for name in found if name and int(name[1]) <= chain_count}
    return names | ({KEY_SET} if names or KEY_SET in file_names else set())


def parse_keys_in_bundle(files: Mapping[str, bytes]) -> list[VerifierKey]:
    """Return the public keys of the key set in the bundle; an empty list for a bundle without receipts.

    Raises:
        BrokenError: the key file is not a COSE_KeySet.
    """
    if KEY_SET not in files:
        return []
    try:
        return parse_cose_key_set(files[KEY_SET])
    except ValueError as error:
        raise BrokenError(KEY_SET, str(error)) from None


def verify_receipts_and_describe_unknown_key(
    files: Mapping[str, bytes],
    receipts_by_record_id: Mapping[str, str],
    hashes_by_record_id: Mapping[str, str],
    checkpoint: CheckpointContent | None,
    keys: Sequence[VerifierKey],
) -> str:
    """Verify that each record of a chain has a valid receipt for the chain's checkpoint.

    Args:
        files: contents of the bundle's files by name.
        receipts_by_record_id: names of the chain's receipts by RecordID; empty if the bundle contains none.
        hashes_by_record_id: ``Hash`` of each record of the chain by RecordID; the records have been verified.
        checkpoint: content of the chain's checkpoint, with a verified signature.
        keys: trusted public keys of the workspace.

    Returns:
        An empty string if all receipts are valid or the chain has none, else the reason why they were not verified.

    Raises:
        BrokenError: a receipt is missing, superfluous or invalid; the error contains the RecordID.
    """
    if not receipts_by_record_id:
        return ""
    # Only receipts need cbor2.
    from oi.verification.receipts import ReceiptError, UnknownKeyError, verify_receipt_for_checkpoint  # noqa: PLC0415

    expected = hashes_by_record_id
    for record_id in sorted(expected.keys() ^ receipts_by_record_id.keys()):
        fault = "no receipt for this record" if record_id in expected else "a receipt, but not the record for it"
        raise BrokenError(record_id, f"the bundle contains {fault}")
    if checkpoint is None:
        raise BrokenError("checkpoint", "the bundle contains receipts, but no checkpoint of this chain")
    doubt = ""
    for record_id, name in receipts_by_record_id.items():
        content = files[name]
        try:
            verify_receipt_for_checkpoint(content, record_id, bytes.fromhex(expected[record_id]), checkpoint, keys)
        except UnknownKeyError as error:
            doubt = str(error)
        except ReceiptError as error:
            raise BrokenError(record_id, f"the receipt is invalid: {error}") from None
    return doubt
