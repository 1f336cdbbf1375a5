"""File names of receipts; a receipt proves that a chain contains a record, or that the chain was only extended."""

from shared.provenance.ports import ChainKey


def build_receipt_file_name(chain: ChainKey, name_part: str) -> str:
    """Build the file name of a receipt.

    Args:
        chain: chain of the receipt.
        name_part: RecordID of the record; for a receipt that the chain was only extended, the sizes of both
            checkpoints, joined by a hyphen.
    """
    return f"{chain.target}-{name_part}.receipt.cbor"
