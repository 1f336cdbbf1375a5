"""The corrections of one entity as a page that people read and print."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from shared.http.messages import Reply
from shared.provenance.ports import ChainKey
from shared.provenance.queries import Answer
from shared.provenance.records import opened

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


def report_reply(chain: ChainKey, entity_id: str, answer: Answer, headers: Mapping[str, str]) -> Reply:
    """Return the page: each correction with before, after, who, when, why, and what was decided."""
    records = [opened(record.canonical, record.hash) for record in answer.records]
    body = _page(chain, entity_id, records, has_more=answer.has_more)
    own = {"Content-Type": f"{HTML}; charset=utf-8", "Content-Security-Policy": _POLICY}
    return Reply(200, body.encode("utf-8"), {**headers, **own})


def _page(chain: ChainKey, entity_id: str, records: Sequence[Mapping[str, Any]], *, has_more: bool) -> str:
    decisions = {str(record["AmendmentID"]): record for record in records if "AmendmentID" in record}
    originals = [record for record in records if "AmendmentID" not in record]
    title = f"Corrections of {entity_id}"
    notice = '<p class="notice">This report is not complete: the entity has more corrections than fit.</p>'
    articles = "".join(_article(record, decisions.get(record["RecordID"])) for record in originals)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<p>Scope {escape(chain.scope_key)}. {len(originals)} corrections, in the order of the chain.</p>"
        f"{notice if has_more else ''}{articles or '<p>Nothing was corrected.</p>'}</body></html>"
    )


def _article(record: Mapping[str, Any], decision: Mapping[str, Any] | None) -> str:
    try:
        return _correction(record, decision)
    except (LookupError, TypeError, AttributeError):
        return (
            f'<article class="damaged"><h2>{escape(str(record.get("RecordID")))}</h2><p class="notice">This record, or '
            f"the decision about it, was changed in the store: verify the chain.</p></article>"
        )


def _correction(record: Mapping[str, Any], decision: Mapping[str, Any] | None) -> str:
    status = decision["Status"] if decision else record["Status"]
    facts = [
        ("Corrected by", f"{record['AmendedBy']}, {record['AmendedAt']}"),
        ("Reason", f"{record['ReasonCategory']}: {record['ReasonText']}"),
        *_decided(decision),
    ]
    return (
        f"<article><h2>{escape(record['RecordID'])} "
        f'<span class="status">{escape(status)}</span></h2><dl>{_facts(facts)}</dl>'
        f"<table><thead><tr><th>Field</th><th>Before</th><th>After</th></tr></thead><tbody>{_rows(record)}</tbody></table>"
        f'<p class="hash">Hash {escape(record["Hash"])}<br>Previous {escape(record["PreviousHash"])}</p></article>'
    )


def _decided(decision: Mapping[str, Any] | None) -> Iterable[tuple[str, str]]:
    if decision is None:
        return
    if decision["Meaning"] == "approval":
        yield "Approved by", f"{decision['ApprovedBy']}, {decision['ApprovedAt']}"
    else:
        yield "Rejected by", f"{decision['RejectedBy']}, {decision['RejectedAt']}"
        yield "Because", decision.get("RejectionReason", "no reason was given")
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
