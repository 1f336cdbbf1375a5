"""Printable HTML report of the amendments of one entity.

Separate from ``amendments`` because it writes HTML and knows no routes.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from shared.http.messages import Reply
from shared.provenance.amendments import AmendmentState
from shared.provenance.decisions import FoundDecisions, decided_amendment_id, has_matching_filter_fields
from shared.provenance.hash_rule import record_id
from shared.provenance.ports import ChainKey, ChainRecord
from shared.provenance.queries import AuditQueryResult
from shared.provenance.records import parse_record
from shared.worker_threads import pause_garbage_collection

HTML = "text/html"
_STYLE = """
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
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
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
class Report:
    """Content of an amendment report.

    Attributes:
        chain: amendments chain of the scope.
        entity_id: the amended entity.
        answer: result of the query for records about the entity, in chain order.
        decided: all decisions about the amendments in ``answer``; ``answer`` does not contain each of them.
    """

    chain: ChainKey
    entity_id: str
    answer: AuditQueryResult
    decided: FoundDecisions


def list_amendment_ids(records: Iterable[ChainRecord]) -> list[str]:
    """Return the RecordIDs of the amendments among records, according to the content of the records."""
    return [record_id(record.sequence) for record in records if not decided_amendment_id(record)]


async def build_report_reply(report: Report, headers: Mapping[str, str]) -> Reply:
    """Build the HTML page: each amendment with its values before and after, author, time, reason and decision."""
    page_headers = {"Content-Type": f"{HTML}; charset=utf-8", "Content-Security-Policy": _CONTENT_SECURITY_POLICY}
    return Reply(200, await asyncio.to_thread(_render, report), {**headers, **page_headers})


def _render(report: Report) -> bytes:
    # Each part is encoded separately, because encoding a whole page in one call would block the other threads.
    with pause_garbage_collection(sum(len(record.canonical) for record in report.answer.records)):
        return b"".join(part.encode("utf-8") for part in _render_parts(report))


def _render_parts(report: Report) -> Iterator[str]:
    amendments = [record for record in report.answer.records if not decided_amendment_id(record)]
    title = f"Amendments of {report.entity_id}"
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<p>Scope {escape(report.chain.scope_key)}. {len(amendments)} amendments, in the order of the chain.</p>"
        f"{_TRUNCATED if report.answer.has_more else ''}"
    )
    for record in amendments:
        yield _render_article(record, report.decided)
    yield "</body></html>" if amendments else "<p>The entity has no amendments.</p></body></html>"


def _render_article(stored: ChainRecord, decided: FoundDecisions) -> str:
    amendment_id = record_id(stored.sequence)
    stored_decision = decided.by_amendment.get(amendment_id)
    if stored_decision is not None and decided_amendment_id(stored_decision) != amendment_id:
        return _render_damaged(amendment_id)
    is_mismatch = not has_matching_filter_fields(stored) or (
        stored_decision is not None and not has_matching_filter_fields(stored_decision)
    )
    try:
        record = parse_record(stored.canonical, stored.hash)
        decision = None if stored_decision is None else parse_record(stored_decision.canonical, stored_decision.hash)
        notice = _MISMATCH if is_mismatch else ""
        if stored_decision is None and not decided.is_complete and record["Status"] == AmendmentState.PENDING:
            notice += _UNREAD.format(record_id(decided.seen_to))
        return _render_amendment(record, decision, notice)
    except (ValueError, LookupError, TypeError, AttributeError):
        return _render_damaged(amendment_id)


def _render_damaged(amendment_id: str) -> str:
    return (
        f'<article class="damaged"><h2>{escape(amendment_id)}</h2><p class="notice">This record or its decision was '
        f"changed in the store. Verify the chain.</p></article>"
    )


def _render_amendment(record: Mapping[str, Any], decision: Mapping[str, Any] | None, notice: str) -> str:
    status = decision["Status"] if decision else record["Status"]
    facts = [
        ("Amended by", f"{record['AmendedBy']}, {record['AmendedAt']}"),
        ("Reason", f"{record['ReasonCategory']}: {record['ReasonText']}"),
        *_list_decision_facts(decision),
    ]
    return (
        f"<article><h2>{escape(record['RecordID'])} "
        f'<span class="status">{escape(status)}</span></h2>{notice}<dl>{_render_facts(facts)}</dl>'
        f"<table><thead><tr><th>Field</th><th>Before</th><th>After</th></tr></thead><tbody>{_render_rows(record)}</tbody></table>"
        f"{_render_hashes('Amendment', record)}{_render_hashes('Decision', decision) if decision else ''}</article>"
    )


def _render_hashes(label: str, record: Mapping[str, Any]) -> str:
    return f'<p class="hash">{label}: Hash {escape(record["Hash"])}<br>Previous {escape(record["PreviousHash"])}</p>'


def _list_decision_facts(decision: Mapping[str, Any] | None) -> Iterable[tuple[str, str]]:
    if decision is None:
        return
    if decision["Meaning"] == "approval":
        yield "Approved by", f"{decision['ApprovedBy']}, {decision['ApprovedAt']}"
    else:
        yield "Rejected by", f"{decision['RejectedBy']}, {decision['RejectedAt']}"
        yield "Reason for rejection", decision.get("RejectionReason", "no reason given")
    yield "Meaning of the signature", decision["Meaning"]
    yield "Recorded as", decision["RecordID"]


def _render_rows(record: Mapping[str, Any]) -> str:
    before, after = record["OriginalRecord"], record["AmendedRecord"]
    changed = set(record["ChangedFields"])
    names = [*record["ChangedFields"], *sorted((before.keys() | after.keys()) - changed)]
    return "".join(_render_row(name, before, after, changed=name in changed) for name in dict.fromkeys(names))


def _render_row(name: str, before: Mapping[str, Any], after: Mapping[str, Any], *, changed: bool) -> str:
    mark = ' class="changed"' if changed else ""
    values = f"<td>{_render_value(before, name)}</td><td>{_render_value(after, name)}</td>"
    return f"<tr{mark}><td>{escape(name)}</td>{values}</tr>"


def _render_value(state: Mapping[str, Any], name: str) -> str:
    return escape(json.dumps(state[name], ensure_ascii=False)) if name in state else "&mdash;"


def _render_facts(facts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
