"""Manifest of an audit bundle, which lists its chains: parses it and checks the type and value of each property."""

import json
from typing import Any, Final

from oi.json_text import build_object_rejecting_duplicates
from oi.verification.export import BrokenError
from oi.verification.hash_rule import is_record_time, parse_integer_or_exact_float

MANIFEST: Final = "manifest.json"
_MANIFEST_MEMBERS: Final = {"workspace", "createdAt", "createdBy", "filters", "chains"}
_FILTERS: Final = {"startDate", "endDate", "entityId"}
_CHAIN_MEMBERS: Final = {"target", "scopeKey", "file", "records", "complete", "checkpoint", "proof", "verdict"}
_VERDICT_MEMBERS: Final = {
    "Valid",
    "ChainValid",
    "Empty",
    "Record",
    "RecomputedHash",
    "BrokenAt",
    "ForkDetected",
    "Reason",
    "Target",
}
_TARGETS: Final = {"PlatformConfig": False, "AccessControl": False, "DomainEvents": True, "DomainAmendments": True}
"""Targets, and whether their chains have a scope."""


def parse_json_file(file_name: str, content: bytes) -> Any:
    """Parse a JSON file of a bundle.

    Raises:
        BrokenError: the file is not JSON, or an object has two properties of the same name.
    """
    try:
        return json.loads(
            content.decode(),
            parse_int=parse_integer_or_exact_float,
            object_pairs_hook=build_object_rejecting_duplicates,
        )
    except (ValueError, RecursionError) as error:
        raise BrokenError(file_name, f"the file is not JSON: {error}") from None


def parse_manifest(content: bytes) -> dict[str, Any]:
    """Parse the manifest of a bundle and check the form of all its properties.

    Raises:
        BrokenError: the manifest is not JSON, or a property is missing, unknown or invalid.
    """
    manifest = parse_json_file(MANIFEST, content)
    if not isinstance(manifest, dict) or manifest.keys() != _MANIFEST_MEMBERS:
        raise BrokenError(MANIFEST, "the manifest lacks a required property, or has an unknown one")
    created_at, filters = manifest["createdAt"], manifest["filters"]
    are_valid = {
        "workspace": isinstance(manifest["workspace"], str) and manifest["workspace"] != "",
        "createdBy": isinstance(manifest["createdBy"], str) and manifest["createdBy"] != "",
        "createdAt": isinstance(created_at, str) and is_record_time(created_at),
        "filters": isinstance(filters, dict)
        and filters.keys() == _FILTERS
        and all(value is None or isinstance(value, str) for value in filters.values()),
        "chains": isinstance(manifest["chains"], list) and manifest["chains"] != [],
    }
    for name, is_valid in are_valid.items():
        if not is_valid:
            raise BrokenError(MANIFEST, f"the property `{name}` of the manifest has an invalid value")
    for number, entry in enumerate(manifest["chains"], start=1):
        if not _is_valid_chain_entry(entry, number):
            raise BrokenError(MANIFEST, f"entry {number} of `chains` has a missing, unknown or invalid property")
        if not entry["complete"] and not any(filters.values()):
            raise BrokenError(
                MANIFEST,
                f"entry {number} of `chains` has `complete: false`, which is allowed only if `filters` has a value",
            )
    return manifest


def _is_valid_chain_entry(entry: Any, chain_number: int) -> bool:
    if not isinstance(entry, dict) or entry.keys() != _CHAIN_MEMBERS or entry["target"] not in tuple(_TARGETS):
        return False
    verdict, scope = entry["verdict"], entry["scopeKey"]
    return (
        (isinstance(scope, str) and bool(scope) if _TARGETS[entry["target"]] else scope is None)
        and entry["file"] == f"chains/{chain_number}.json"
        and entry["checkpoint"] in (None, f"checkpoints/{chain_number}.txt")
        and entry["proof"] in (None, f"proofs/{chain_number}.json")
        and type(entry["records"]) is int
        and type(entry["complete"]) is bool
        and entry["complete"] == (verdict is not None)
        and (verdict is None or _is_valid_verdict(verdict, entry["target"]))
    )


def _is_valid_verdict(verdict: Any, target: str) -> bool:
    return (
        isinstance(verdict, dict)
        and verdict.keys() == _VERDICT_MEMBERS
        and all(type(verdict[name]) is bool for name in ("ChainValid", "Empty", "ForkDetected"))
        and all(verdict[name] is None for name in ("Valid", "Record", "RecomputedHash"))
        and isinstance(verdict["Reason"], str)
        and verdict["ChainValid"] == (verdict["BrokenAt"] is None)
        and not (verdict["ChainValid"] and verdict["ForkDetected"])
        and verdict["Target"] == target
    )
