"""Tests that the published test vectors of the hash rule are correct and shown in docs/explanation/audit-trail.md."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from oi.verification.export import verify_export_and_count_records

from shared.provenance.hash_rule import compute_genesis_hash, parse_integer_or_exact_float
from shared.provenance.merkle import CompactRange
from shared.provenance.records import build_record_draft, seal_record

ROOT = Path(__file__).parents[4]
CHAINS = json.loads((ROOT / "tests" / "vectors" / "chain.json").read_text(encoding="utf-8"))["chains"]
PAGE = (ROOT / "docs" / "explanation" / "audit-trail.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain["target"])
def test_the_published_vectors_follow_from_the_hash_rule(chain: dict[str, Any]) -> None:
    """The Hashes, links and roots in the vectors follow from the hash rule; the append engine writes the same bytes."""
    lines = ("oi-provenance/v1", chain["workspace"], chain["target"], chain["scopeKey"])
    previous = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert chain["genesis"] == previous == compute_genesis_hash(*lines[1:])
    records = []
    for sequence, vector in enumerate(chain["records"], start=1):
        canonical = bytes.fromhex(vector["canonicalHex"])
        value = json.loads(canonical, parse_int=parse_integer_or_exact_float)
        assert (value["PreviousHash"], rfc8785.dumps(value)) == (previous, canonical)
        previous = hashlib.sha256(canonical).hexdigest()
        assert vector["hash"] == previous
        body = {name: value[name] for name in value if name not in ("RecordID", "Timestamp", "PreviousHash")}
        made = seal_record(build_record_draft(body), sequence, value["Timestamp"], value["PreviousHash"], "x")
        assert (made.canonical, made.hash) == (canonical, vector["hash"])
        records.append(value | {"Hash": vector["hash"]})
    assert verify_export_and_count_records(records, *lines[1:]) == len(records)
    tree = CompactRange()
    tree.append(bytes.fromhex(vector["hash"]) for vector in chain["records"])
    assert tree.compute_root().hex() == chain["merkleRoot"]


def test_the_audit_trail_page_shows_the_vectors() -> None:
    """The page shows the genesis hashes, the roots and one complete chain, for developers of other verifiers."""
    for chain in CHAINS:
        assert chain["genesis"] in PAGE
        assert chain["merkleRoot"] in PAGE
    for vector in CHAINS[0]["records"]:
        assert f"{bytes.fromhex(vector['canonicalHex']).decode()}\n{vector['hash']}\n" in PAGE
