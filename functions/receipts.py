"""HTTP operations on receipts of audit records, and on the keys that verify them."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from functions.conditions import parse_if_none_match
from functions.provenance_queries import CheckpointQuery, SequenceOrSize
from functions.reply_docs import audit_overview as replies
from shared.auth.jose import to_jwk
from shared.auth.rights import AccessRight
from shared.errors import ValidationErrors, build_invalid_field_error
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Access, Call, Group
from shared.provenance.cose import compute_content_etag, encode_key_set
from shared.provenance.hash_rule import RECORD_ID_DIGITS, format_record_id, sequence_from_record_id
from shared.provenance.receipt_names import build_receipt_file_name
from shared.provenance.selection import check_target_and_scope, resolve_chain_to_read
from shared.wiring import services
from shared.wiring.features import PROVENANCE

GROUP = Group("receipts")
MEDIA_TYPE: Final = 'application/cose; cose-type="cose-sign1"'
_CACHED: Final = "private, max-age=31536000, immutable"
_REVALIDATED: Final = "private, no-cache"


def _parse_record_id(text: str) -> int:
    """Convert a RecordID of 12 digits to the sequence number of the record."""
    sequence = sequence_from_record_id(text)
    if sequence is None:
        raise ValueError(f"must be a sequence number of {RECORD_ID_DIGITS} digits")
    return sequence


RecordId = Annotated[
    int | None, BeforeValidator(_parse_record_id), WithJsonSchema({"type": "string", "pattern": "^[0-9]{12}$"})
]


class ReceiptQuery(CheckpointQuery):
    """Query parameters that select the receipt (proof) to return.

    ``recordId`` requests a proof that the chain contains a record. ``from`` requests a proof that the chain was only
    extended since an earlier checkpoint. ``size`` selects the checkpoint for which the receipt is valid, by its number
    of records; the default is the newest checkpoint.
    """

    model_config = ConfigDict(extra="ignore")

    record_id: RecordId = Field(None, alias="recordId", description="RecordID of a record, for a receipt of inclusion.")
    from_size: SequenceOrSize = Field(
        None, alias="from", description="Size of an earlier checkpoint, for a growth receipt."
    )
    size: SequenceOrSize = Field(None, description="Size of the checkpoint. Default: the newest.")


class KeyFormat(StrEnum):
    """File format of a set of public keys."""

    COSE = "cose"
    JWKS = "jwks"


class KeyQuery(BaseModel):
    """Query parameter of the route that returns the public keys of checkpoints and receipts."""

    format: KeyFormat | None = Field(
        None, description="cose or jwks, for the set of all trusted keys. Default: the current key as a line of text."
    )


async def _check_receipt_query(call: Call[ReceiptQuery], faults: ValidationErrors) -> None:
    query = call.query
    check_target_and_scope(faults, query.target, query.scope_key)
    if faults.has_valid_fields("recordId", "from") and (query.record_id is None) == (query.from_size is None):
        faults.add(build_invalid_field_error("recordId", "exactly one of recordId and from is required"))
    elif faults.has_valid_fields("recordId", "from", "size"):
        _check_checkpoint_sizes(query, faults)


def _check_checkpoint_sizes(query: ReceiptQuery, faults: ValidationErrors) -> None:
    """Check the sizes (numbers of records) of the checkpoints that a query names, and add errors to ``faults``.

    ``size`` must be at least the sequence number of the record, so that the checkpoint covers it. ``from``, the size of
    the earlier checkpoint, must be at least 1 and less than ``size``.
    """
    if query.from_size is not None and query.from_size < 1:
        faults.add(build_invalid_field_error("from", "must be at least 1"))
    elif query.size is not None:
        if query.record_id is not None and query.size < query.record_id:
            faults.add(build_invalid_field_error("size", f"must cover the record: at least {query.record_id}"))
        if query.from_size is not None and query.size <= query.from_size:
            faults.add(build_invalid_field_error("from", f"must be less than `size`, which is {query.size}"))


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/receipt",
    right=AccessRight.PROVENANCE_READ,
    feature=PROVENANCE,
    query=ReceiptQuery,
    check=_check_receipt_query,
    docs=replies.RECEIPT_FILE,
)
async def issue_receipt(call: Call[ReceiptQuery]) -> Reply:
    """Return a receipt (RFC 9942), a proof that a chain contains a record or was only extended since a checkpoint."""
    query, receipts = call.query, services().provenance.receipts
    chain = resolve_chain_to_read(query.target, query.scope_key)
    condition = parse_if_none_match(call.request)
    if query.record_id is not None:
        content = await receipts.issue_inclusion_receipt(chain, query.record_id, query.size)
        name = format_record_id(query.record_id)
    else:
        content, size = await receipts.issue_growth_receipt(chain, query.from_size or 0, query.size)
        name = f"{query.from_size}-{size}"
    headers = {
        "ETag": compute_content_etag(content),
        "Cache-Control": _REVALIDATED if query.size is None else _CACHED,
    }
    if condition.is_not_modified(headers["ETag"]):
        return Reply(304, b"", headers)
    file = {"Content-Disposition": f'attachment; filename="{build_receipt_file_name(chain, name)}"'}
    return Reply(200, content, {"Content-Type": MEDIA_TYPE, **file, **headers})


@GROUP.endpoint(
    "GET",
    ".well-known/oi-checkpoint-key",
    access=Access.PUBLIC,
    feature=PROVENANCE,
    query=KeyQuery,
    docs=replies.VERIFIER_KEY,
)
async def checkpoint_key(call: Call[KeyQuery]) -> Reply:
    """Return the public keys that verify checkpoints and receipts."""
    checkpoints = services().provenance.checkpoints
    match call.query.format:
        case KeyFormat.COSE:
            content = encode_key_set(await checkpoints.keys.load_trusted_keys())
            return Reply(200, content, {"Content-Type": "application/cose-key-set"})
        case KeyFormat.JWKS:
            keys = await checkpoints.keys.load_trusted_keys()
            return build_json_reply(
                {"keys": [{**to_jwk(key.parse_public_key()), "kid": key.key_id.hex()} for key in keys]}
            )
        case _:
            key = await checkpoints.load_verifier_key()
            return Reply(200, f"{key}\n".encode(), {"Content-Type": "text/plain; charset=utf-8"})
