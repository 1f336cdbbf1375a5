"""The corrections of one entity as a page that people read and print."""

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
from shared.worker_threads import collection_paused

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
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


_DIFFERS = (
    '<p class="notice">What the store has beside this record, or beside the decision about it, is not what the record '
    "says, or the record does not have its digest: verify the chain.</p>"
)
_UNREAD = (
    '<p class="notice">Not known beyond record {}: a decision that came later, and whose filter fields somebody '
    "changed, would not be shown here. Verify the chain.</p>"
)
_PREFIX = (
    '<p class="notice">This report is not complete: the entity has more corrections than fit. Decisions about those '
    "shown are looked up by their ids, so that none that was made is missing.</p>"
)


@dataclass(frozen=True, slots=True)
class Report:
    """What a page is made of.

    Attributes:
        chain: the scope's chain of corrections.
        entity_id: whose corrections.
        answer: the entity's records.
        decided: the decisions about the corrections among them, wherever these stand.
    """

    chain: ChainKey
    entity_id: str
    answer: AuditQueryResult
    decided: FoundDecisions


def corrections(records: Iterable[ChainRecord]) -> list[str]:
    """Return the RecordIDs of those records that are corrections by what they say."""
    return [record_id(record.sequence) for record in records if not decided_amendment_id(record)]


async def report_reply(report: Report, headers: Mapping[str, str]) -> Reply:
    """Return the page: each correction with before, after, who, when, why, and what was decided."""
    own = {"Content-Type": f"{HTML}; charset=utf-8", "Content-Security-Policy": _POLICY}
    return Reply(200, await asyncio.to_thread(_rendered, report), {**headers, **own})


def _rendered(report: Report) -> bytes:
    # Part by part: encoding the whole page in one call would keep other threads from running for as long.
    with collection_paused(sum(len(record.canonical) for record in report.answer.records)):
        return b"".join(part.encode("utf-8") for part in _parts(report))


def _parts(report: Report) -> Iterator[str]:
    originals = [record for record in report.answer.records if not decided_amendment_id(record)]
    title = f"Corrections of {report.entity_id}"
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<p>Scope {escape(report.chain.scope_key)}. {len(originals)} corrections, in the order of the chain.</p>"
        f"{_PREFIX if report.answer.has_more else ''}"
    )
    for record in originals:
        yield _article(record, report.decided)
    yield "</body></html>" if originals else "<p>Nothing was corrected.</p></body></html>"


def _article(stored: ChainRecord, decided: FoundDecisions) -> str:
    here = record_id(stored.sequence)
    about_it = decided.by_amendment.get(here)
    if about_it is not None and decided_amendment_id(about_it) != here:
        return _damaged(here)
    differs = not has_matching_filter_fields(stored) or (
        about_it is not None and not has_matching_filter_fields(about_it)
    )
    try:
        record = parse_record(stored.canonical, stored.hash)
        decision = None if about_it is None else parse_record(about_it.canonical, about_it.hash)
        notice = _DIFFERS if differs else ""
        if about_it is None and not decided.whole and record["Status"] == AmendmentState.PENDING:
            notice += _UNREAD.format(record_id(decided.seen_to))
        return _correction(record, decision, notice)
    except (ValueError, LookupError, TypeError, AttributeError):
        return _damaged(here)


def _damaged(here: str) -> str:
    return (
        f'<article class="damaged"><h2>{escape(here)}</h2><p class="notice">This record, or '
        f"the decision about it, was changed in the store: verify the chain.</p></article>"
    )


def _correction(record: Mapping[str, Any], decision: Mapping[str, Any] | None, notice: str) -> str:
    status = decision["Status"] if decision else record["Status"]
    facts = [
        ("Corrected by", f"{record['AmendedBy']}, {record['AmendedAt']}"),
        ("Reason", f"{record['ReasonCategory']}: {record['ReasonText']}"),
        *_decided(decision),
    ]
    return (
        f"<article><h2>{escape(record['RecordID'])} "
        f'<span class="status">{escape(status)}</span></h2>{notice}<dl>{_facts(facts)}</dl>'
        f"<table><thead><tr><th>Field</th><th>Before</th><th>After</th></tr></thead><tbody>{_rows(record)}</tbody></table>"
        f"{_links('The correction', record)}{_links('The decision', decision) if decision else ''}</article>"
    )


def _links(what: str, record: Mapping[str, Any]) -> str:
    return f'<p class="hash">{what}: Hash {escape(record["Hash"])}<br>Previous {escape(record["PreviousHash"])}</p>'


def _decided(decision: Mapping[str, Any] | None) -> Iterable[tuple[str, str]]:
    if decision is None:
        return
    if decision["Meaning"] == "approval":
        yield "Approved by", f"{decision['ApprovedBy']}, {decision['ApprovedAt']}"
    else:
        yield "Rejected by", f"{decision['RejectedBy']}, {decision['RejectedAt']}"
        yield "Because", decision.get("RejectionReason", "no reason was given")
    yield "Meaning of the signature", decision["Meaning"]
    yield "Recorded as", decision["RecordID"]


def _rows(record: Mapping[str, Any]) -> str:
    before, after = record["OriginalRecord"], record["AmendedRecord"]
    changed = set(record["ChangedFields"])
    names = [*record["ChangedFields"], *sorted((before.keys() | after.keys()) - changed)]
    return "".join(_row(name, before, after, changed=name in changed) for name in dict.fromkeys(names))


def _row(name: str, before: Mapping[str, Any], after: Mapping[str, Any], *, changed: bool) -> str:
    mark = ' class="changed"' if changed else ""
    return f"<tr{mark}><td>{escape(name)}</td><td>{_value(before, name)}</td><td>{_value(after, name)}</td></tr>"


def _value(state: Mapping[str, Any], name: str) -> str:
    return escape(json.dumps(state[name], ensure_ascii=False)) if name in state else "&mdash;"


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
