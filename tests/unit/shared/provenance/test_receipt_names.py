"""Tests of the file names of receipts."""

from shared.provenance.ports import ChainKey, Target
from shared.provenance.receipt_names import build_receipt_file_name


def test_the_file_name_of_a_receipt_contains_no_scope() -> None:
    """The file name of a receipt does not contain the scope, because a scope may have any characters."""
    chain = ChainKey(Target.DOMAIN_EVENTS, "../line 1")
    assert build_receipt_file_name(chain, "000000000007") == "DomainEvents-000000000007.receipt.cbor"
    assert build_receipt_file_name(chain, "7-20") == "DomainEvents-7-20.receipt.cbor"
