"""Tests of the header of the printable report of amendments."""

from shared.provenance.amendment_report import AmendmentReport, render_amendment_report_html
from shared.provenance.checkpoint_ports import StoredCheckpoint
from shared.provenance.decisions import FoundDecisions
from shared.provenance.notes import CheckpointContent
from shared.provenance.overview_ports import StoredVerdict
from shared.provenance.ports import ChainKey, Target
from shared.provenance.queries import AuditQueryResult
from shared.provenance.report_header import ChainEvidence, ReportHeader, render_header_html

AT = "2026-05-04T08:00:00.000000Z"
CHECKPOINT = StoredCheckpoint("DomainAmendments/1/000000000002", b"", AT)


def render_report_header(evidence: ChainEvidence | None, entity_types: tuple[str, ...] = ("Batch",)) -> str:
    """Render the header of a report with the given evidence about the chain."""
    header = ReportHeader("plant-a", "Plant <A>", AT, "viewer@t", "Auditor", evidence)
    return render_header_html(header, "line-1", "B-1", entity_types)


def test_a_report_names_its_origin() -> None:
    """A report states workspace, scope, entity, entity type, author and UTC time; values are escaped."""
    text = render_report_header(None)
    for expected in (
        *("Plant &lt;A&gt; (plant-a)", "<dd>line-1</dd>", "<dd>B-1</dd>", "<dd>Batch</dd>"),
        "2026-05-04 08:00:00.000000 UTC by Auditor (viewer@t)",
        "All times are UTC.",
    ):
        assert expected in text
    assert "Verification" not in text
    assert "<dd>unknown</dd>" in render_report_header(None, ())


def test_a_report_states_the_verdict_and_the_checkpoint() -> None:
    """The report of a valid chain has the chain's size, the time of its verification and the checkpoint's root hash."""
    signed = CheckpointContent("origin", 2, bytes(32))
    text = render_report_header(ChainEvidence(StoredVerdict(AT, 1, is_valid=True), CHECKPOINT, signed))
    assert "The chain is intact: 1 record, verified 2026-05-04 08:00:00.000000 UTC." in text
    assert f"covers 2 records; root hash {'00' * 32}." in text
    assert "notice" not in text


def test_a_report_of_a_broken_chain_has_a_warning() -> None:
    """The report of a broken chain has a warning with position and reason; an untrusted checkpoint is reported, too."""
    verdict = StoredVerdict(
        AT, 4, is_valid=False, broken_at="000000000002", reason="the record does not link to the record before it"
    )
    text = render_report_header(ChainEvidence(verdict, CHECKPOINT, None))
    assert text.startswith('<p class="notice">Altered after it was recorded. Do not rely on these values.</p>')
    assert "The chain is broken at 000000000002: the record does not link to the record before it" in text
    assert "is not trusted." in text
    unreadable = StoredCheckpoint.build_unreadable(CHECKPOINT.name)
    text = render_report_header(ChainEvidence(verdict, unreadable, None))
    assert f"The signature of {CHECKPOINT.name} is not trusted." in text


def test_a_new_chain_has_no_verdict_and_no_checkpoint() -> None:
    """Without a verification or checkpoint of the chain, the report says that there is none yet."""
    text = render_report_header(ChainEvidence(None, None, None))
    assert "The chain was not verified yet." in text
    assert "No checkpoint was signed yet." in text


def test_the_style_sheet_numbers_printed_pages() -> None:
    """The style sheet of a report numbers the printed pages."""
    header = ReportHeader("plant-a", "Plant A", AT, "viewer@t", "Auditor", None)
    chain = ChainKey(Target.DOMAIN_AMENDMENTS, "line-1")
    page = render_amendment_report_html(
        AmendmentReport(chain, "B-1", AuditQueryResult((), 0, has_more=False), FoundDecisions({}, 0), header)
    )
    assert b'content: "Page " counter(page) " of " counter(pages)' in page
    assert b"The entity has no amendments." in page
