"""Reply with the printable HTML report of the amendments of one entity.

This module is separate from ``amendments`` because it replies with HTML instead of JSON.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.http.messages import Reply
from shared.provenance.amendment_report import Report, render_report
from shared.provenance.notes import NoteError
from shared.provenance.ports import ChainKey
from shared.provenance.report_header import ChainEvidence, ReportHeader
from shared.timestamps import rfc3339
from shared.wiring import services

HTML = "text/html"
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_VERIFY_SECONDS: Final = 20.0
"""Maximum time to verify a chain for a report; the report of a longer chain shows the last verification."""


async def build_report_reply(report: Report, headers: Mapping[str, str]) -> Reply:
    """Build the reply with the report of an entity's amendments as an HTML page."""
    page_headers = {"Content-Type": f"{HTML}; charset=utf-8", "Content-Security-Policy": _CONTENT_SECURITY_POLICY}
    return Reply(200, await services().runtime.run_in_thread(render_report, report), {**headers, **page_headers})


async def load_report_header(chain: ChainKey, author: Principal) -> ReportHeader:
    """Load the beginning of a report: workspace, author, time, and state of the chain if the author may read it.

    The chain is verified first if the author may verify chains.
    """
    workspace = (await services().catalog.current()).workspace
    return ReportHeader(
        workspace_id=workspace.id if workspace else "",
        workspace_name=workspace.name if workspace else "",
        created_at=rfc3339(services().runtime.now()),
        created_by=author.member_id,
        author_name=author.name,
        evidence=await _load_evidence(chain, author) if AccessRight.PROVENANCE_READ in author.rights else None,
    )


async def _load_evidence(chain: ChainKey, author: Principal) -> ChainEvidence:
    provenance = services().provenance
    if AccessRight.PROVENANCE_VERIFY in author.rights:
        try:
            async with asyncio.timeout(_VERIFY_SECONDS):
                await provenance.verifier.verify(chain)
        except TimeoutError:
            pass
    verdict = await provenance.chain_overview.find_verdict(chain)
    stored = await provenance.checkpoints.find_newest(chain)
    if stored is None:
        return ChainEvidence(verdict, None, None)
    try:
        return ChainEvidence(verdict, stored, await provenance.checkpoints.open(chain, stored))
    except NoteError:
        return ChainEvidence(verdict, stored, None)
