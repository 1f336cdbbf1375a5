"""Printable HTML report of amendments with their decisions."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any
from urllib.parse import urlencode

from shared.interpreter import pause_garbage_collection
from shared.provenance.amendments import AmendmentState
from shared.provenance.decisions import FoundDecisions, has_metadata_matching_content, read_decided_amendment_id
from shared.provenance.hash_rule import format_record_id
from shared.provenance.ports import ChainKey, ChainRecord
from shared.provenance.queries import AuditQueryResult
from shared.provenance.receipt_names import build_receipt_file_name
from shared.provenance.records import parse_record
from shared.provenance.report_header import (
    PAGE_NUMBERS,
    Fact,
    ReportHeader,
    format_instant,
    render_facts_html,
    render_header_html,
)

_STYLE = (
    """
body { font: 15px/1.45 system-ui, sans-serif; color: #1b1b1b; background: #fff; margin: 2rem auto; max-width: 60rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 0 0 .3rem; }
article { border: 1px solid #c8c8c8; border-radius: .4rem; padding: 1rem; margin: 1rem 0; break-inside: avoid; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; table-layout: fixed; }
th, td { border: 1px solid #d8d8d8; padding: .3rem .5rem; text-align: left; overflow-wrap: anywhere; }
th { background: #f3f3f3; } dt { font-weight: 600; } dd { margin: 0 0 .3rem; }
.changed td { background: #fff6d6; } .hash { font-family: ui-monospace, monospace; font-size: .8rem; color: #555; }
.status { display: inline-block; padding: .1rem .5rem; border: 1px solid currentColor; border-radius: 1rem; }
.notice { border: 2px solid #b00020; color: #b00020; padding: .6rem; font-weight: 600; }
@media print { body { margin: 0; max-width: none; } }
"""
    + PAGE_NUMBERS
)
_MISMATCH = (
    '<p class="notice">The digest or the filter fields in the store do not match this record or its decision. '
    "Verify the chain.</p>"
)
_UNREAD = (
    '<p class="notice">Only records up to {} were searched for a decision. A later decision whose filter fields were '
    "changed in the store is not shown. Verify the chain.</p>"
)
_TRUNCATED = (
    '<p class="notice">This report is incomplete because the entity has too many amendments. For each amendment shown, '
    "the decision was looked up by id, so no decision about it is missing.</p>"
)


@dataclass(frozen=True, slots=True)
class AmendmentReport:
    """Content of a printable report of amendments.

    Attributes:
        chain: key of the chain that contains the amendments.
        entity_id: id of the amended entity.
        answer: amendments and decisions about the entity, in the order of the chain.
        decided: all decisions about the amendments in ``answer``, also decisions that ``answer`` does not contain.
        header: workspace, author and time of the report, and state of the chain.
        receipts: receipts of the amendments and decisions that a checkpoint covers, by RecordID.
    """

    chain: ChainKey
    entity_id: str
    answer: AuditQueryResult
    decided: FoundDecisions
    header: ReportHeader
    receipts: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _ReceiptLinks:
    """Renders the HTML links to the receipts of audit records.

    Each link contains the whole receipt as a data URL, so a saved page needs no other file.
    """

    chain: ChainKey
    receipts: Mapping[str, bytes]

    def render_link_html(self, record_id: str) -> str:
        """Render the link to a record's receipt, and the receipt's URL as text for print; empty without a receipt."""
        receipt = self.receipts.get(record_id)
        if receipt is None:
            return ""
        name = build_receipt_file_name(self.chain, record_id)
        query = {"target": self.chain.target, "scopeKey": self.chain.scope_key, "recordId": record_id}
        content = f"data:application/cose;base64,{b64encode(receipt).decode()}"
        return (
            f'<br>Receipt <a download="{escape(name)}" href="{content}">{escape(name)}</a>, '
            f"also at {escape(f'/oi-api/provenance/receipt?{urlencode(query)}')}"
        )


def render_amendment_report_html(report: AmendmentReport) -> bytes:
    """Render the report as an HTML page: each amendment with old and new values, author, time, reason and decision."""
    # Each part is encoded separately, because encoding a whole page in one call would block the other threads.
    with pause_garbage_collection(sum(len(record.canonical) for record in report.answer.records)):
        return b"".join(part.encode("utf-8") for part in _iterate_html_parts(report))


def _iterate_html_parts(report: AmendmentReport) -> Iterator[str]:
    amendments = [record for record in report.answer.records if not read_decided_amendment_id(record)]
    title = f"Amendments of {report.entity_id}"
    count = "1 amendment" if len(amendments) == 1 else f"{len(amendments)} amendments, in the order of the chain"
    types = sorted({str(record.projection.get("EntityType", "")) for record in amendments} - {""})
    yield (
        f"{render_html_page_start(title)}"
        f"{render_header_html(report.header, report.chain.scope_key, report.entity_id, types)}"
        f"<p>{count}.</p>{_TRUNCATED if report.answer.has_more else ''}"
    )
    for record in amendments:
        yield render_amendment_html(record, report.decided, _ReceiptLinks(report.chain, report.receipts))
    yield "</body></html>" if amendments else "<p>The entity has no amendments.</p></body></html>"


def render_html_page_start(title: str) -> str:
    """Render the beginning of an HTML page, including the heading, which is the title."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
    )


def render_amendment_html(stored: ChainRecord, decisions: FoundDecisions, links: "_ReceiptLinks | None" = None) -> str:
    """Render one amendment with its decision as HTML; for a damaged one, render only a notice of the damage.

    Args:
        stored: the amendment as it is stored.
        decisions: decisions about amendments.
        links: receipts of the amendments and decisions; None for a page without receipts.
    """
    amendment_id = format_record_id(stored.sequence)
    stored_decision = decisions.by_amendment.get(amendment_id)
    if stored_decision is not None and read_decided_amendment_id(stored_decision) != amendment_id:
        return _render_damaged_amendment_html(amendment_id)
    is_mismatch = not has_metadata_matching_content(stored) or (
        stored_decision is not None and not has_metadata_matching_content(stored_decision)
    )
    try:
        record = parse_record(stored.canonical, stored.hash)
        decision = None if stored_decision is None else parse_record(stored_decision.canonical, stored_decision.hash)
        notice = _MISMATCH if is_mismatch else ""
        if stored_decision is None and not decisions.is_complete and record["Status"] == AmendmentState.PENDING:
            notice += _UNREAD.format(format_record_id(decisions.seen_to))
        return _render_amendment_article_html(record, decision, notice, links)
    except (ValueError, LookupError, TypeError, AttributeError):
        return _render_damaged_amendment_html(amendment_id)


def _render_damaged_amendment_html(amendment_id: str) -> str:
    return (
        f'<article class="damaged"><h2>{escape(amendment_id)}</h2><p class="notice">This record or its decision was '
        f"changed in the store. Verify the chain.</p></article>"
    )


def _render_amendment_article_html(
    record: Mapping[str, Any], decision: Mapping[str, Any] | None, notice: str, links: "_ReceiptLinks | None"
) -> str:
    status = decision["Status"] if decision else record["Status"]
    facts = [
        Fact("Amended by", f"{record['AmendedBy']}, {format_instant(record['AmendedAt'])}"),
        Fact("Reason", f"{record['ReasonCategory']}: {record['ReasonText']}"),
        *_iterate_decision_facts(decision),
    ]
    return (
        f"<article><h2>{escape(record['RecordID'])} "
        f'<span class="status">{escape(status)}</span></h2>{notice}<dl>{render_facts_html(facts)}</dl>'
        f"<table><thead><tr><th>Field</th><th>Before</th><th>After</th></tr></thead><tbody>{_render_field_rows_html(record)}</tbody></table>"
        f"{_render_hashes_html('Amendment', record, links)}"
        f"{_render_hashes_html('Decision', decision, links) if decision else ''}</article>"
    )


def _render_hashes_html(label: str, record: Mapping[str, Any], links: "_ReceiptLinks | None") -> str:
    receipt = links.render_link_html(record["RecordID"]) if links else ""
    hashes = f"Hash {escape(record['Hash'])}<br>Previous {escape(record['PreviousHash'])}"
    return f'<p class="hash">{label}: {hashes}{receipt}</p>'


def _iterate_decision_facts(decision: Mapping[str, Any] | None) -> Iterable[Fact]:
    """Yield the labels and values that the report prints about a decision; nothing without a decision."""
    if decision is None:
        return
    if decision["Meaning"] == "approval":
        yield Fact("Approved by", f"{decision['ApprovedBy']}, {format_instant(decision['ApprovedAt'])}")
    else:
        yield Fact("Rejected by", f"{decision['RejectedBy']}, {format_instant(decision['RejectedAt'])}")
        yield Fact("Reason for rejection", decision.get("RejectionReason", "no reason given"))
    yield from _iterate_signature_facts(decision)
    yield Fact("Recorded as", decision["RecordID"])


def _iterate_signature_facts(decision: Mapping[str, Any]) -> Iterable[Fact]:
    """Yield the labels and values that the report prints about a decision's signature, such as name and time.

    For a decision that is not signed, yield only the decision's meaning (approval or rejection).
    """
    signature = decision.get("Signature")
    if signature is None:
        yield Fact("Meaning of the decision", decision["Meaning"])
        return
    yield Fact("Signed by", f"{signature['PrintedName']} ({signature['UserID']})")
    yield Fact("Signed at", format_instant(signature["SignedAt"]))
    yield Fact("Meaning of the signature", signature["Meaning"])
    if signature["Statement"] is not None:
        yield Fact("Statement", signature["Statement"])
    yield Fact(
        "Signed in at",
        f"{format_instant(signature['AuthTime'])}, {', '.join(signature['AuthMethods']) or 'unknown'}",
    )
    yield Fact("Hash of the signed record", signature["RecordHash"])


def _render_field_rows_html(record: Mapping[str, Any]) -> str:
    before, after = record["OriginalRecord"], record["AmendedRecord"]
    changed = set(record["ChangedFields"])
    names = [*record["ChangedFields"], *sorted((before.keys() | after.keys()) - changed)]
    return "".join(
        _render_field_row_html(name, before, after, changed=name in changed) for name in dict.fromkeys(names)
    )


def _render_field_row_html(
    field_name: str, before: Mapping[str, Any], after: Mapping[str, Any], *, changed: bool
) -> str:
    mark = ' class="changed"' if changed else ""
    values = (
        f"<td>{_render_field_value_html(before, field_name)}</td><td>{_render_field_value_html(after, field_name)}</td>"
    )
    return f"<tr{mark}><td>{escape(field_name)}</td>{values}</tr>"


def _render_field_value_html(state: Mapping[str, Any], field_name: str) -> str:
    return escape(json.dumps(state[field_name], ensure_ascii=False)) if field_name in state else "&mdash;"
