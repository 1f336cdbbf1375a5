"""Header of the printable report of amendments: workspace, author and time of the report, and state of the chain."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, NamedTuple

from shared.provenance.checkpoint_ports import StoredCheckpoint
from shared.provenance.notes import CheckpointContent
from shared.provenance.overview_ports import StoredVerdict
from shared.provenance.records import format_record_count

PAGE_NUMBERS: Final = """
@page { margin: 18mm 15mm; @bottom-right { content: "Page " counter(page) " of " counter(pages); font-size: 9pt; } }
"""
"""Style sheet that numbers printed pages."""


@dataclass(frozen=True, slots=True)
class ChainEvidence:
    """State of the audit chain that a report is about.

    Attributes:
        verdict: result of the chain's last complete verification; None if there was none.
        checkpoint: newest checkpoint; None if the chain has none.
        signed: content of this checkpoint; None if its signature is not trusted.
    """

    verdict: StoredVerdict | None
    checkpoint: StoredCheckpoint | None
    signed: CheckpointContent | None


@dataclass(frozen=True, slots=True)
class ReportHeader:
    """Facts at the beginning of a report: its workspace, author and time.

    Attributes:
        workspace_id: id of the workspace.
        workspace_name: display name of the workspace.
        created_at: time of the report, RFC 3339 in UTC.
        created_by: id of the member who requested the report.
        author_name: display name of this member.
        evidence: state of the chain; None if the member may not read the audit log.
    """

    workspace_id: str
    workspace_name: str
    created_at: str
    created_by: str
    author_name: str
    evidence: ChainEvidence | None


class Fact(NamedTuple):
    """Line of a report: its label, and the value, which is printed as text."""

    label: str
    value: Any


def render_header_html(header: ReportHeader, scope_key: str, entity_id: str, entity_types: Sequence[str]) -> str:
    """Render the facts about a report and its chain as HTML; if the chain is broken, a warning precedes them."""
    evidence = header.evidence
    is_broken = evidence is not None and evidence.verdict is not None and not evidence.verdict.is_valid
    facts = [
        Fact("Workspace", f"{header.workspace_name} ({header.workspace_id})"),
        Fact("Scope", scope_key),
        Fact("Entity type", ", ".join(entity_types) or "unknown"),
        Fact("Entity", entity_id),
        Fact("Report created", f"{format_instant(header.created_at)} by {header.author_name} ({header.created_by})"),
        *([] if evidence is None else _iterate_chain_facts(evidence)),
        Fact("Time zone", "All times are UTC."),
    ]
    return f"{_BROKEN if is_broken else ''}<dl>{render_facts_html(facts)}</dl>"


_BROKEN: Final = '<p class="notice">Altered after it was recorded. Do not rely on these values.</p>'


def _iterate_chain_facts(evidence: ChainEvidence) -> Iterable[Fact]:
    yield Fact("Verification", _describe_verdict(evidence.verdict))
    yield Fact("Checkpoint", _describe_checkpoint(evidence))


def _describe_verdict(verdict: StoredVerdict | None) -> str:
    if verdict is None:
        return "The chain was not verified yet."
    at = f"verified {format_instant(verdict.verified_at)}"
    if verdict.is_valid:
        return f"The chain is intact: {format_record_count(verdict.records)}, {at}."
    return f"The chain is broken at {verdict.broken_at}: {verdict.reason}; {at}."


def _describe_checkpoint(evidence: ChainEvidence) -> str:
    if evidence.checkpoint is None:
        return "No checkpoint was signed yet."
    stored = evidence.checkpoint.name
    if evidence.checkpoint.created_at:
        stored += f", stored {format_instant(evidence.checkpoint.created_at)}"
    if evidence.signed is None:
        return f"The signature of {stored} is not trusted."
    root = evidence.signed.root.hex()
    return f"{stored}, covers {format_record_count(evidence.signed.size)}; root hash {root}."


def format_instant(instant: str) -> str:
    """Format a stored time, which is UTC, with its zone: ``2026-05-04 08:00:00.000000 UTC``."""
    return f"{instant.removesuffix('Z').replace('T', ' ')} UTC"


def render_facts_html(facts: Iterable[Fact]) -> str:
    """Render labels and values as an HTML description list."""
    return "".join(f"<dt>{escape(label)}</dt><dd>{escape(str(value))}</dd>" for label, value in facts)
