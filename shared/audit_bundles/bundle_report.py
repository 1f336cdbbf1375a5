"""Texts for people in an audit bundle: the printable report and the README file.

This module is separate from ``work``, which reads the chains and stores the bundle.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from shared.audit_bundles.bundle_file import KEY_SET
from shared.provenance.amendment_report import render_amendment, render_page_start
from shared.provenance.decisions import find_decisions, read_decided_amendment_id
from shared.provenance.hash_rule import format_record_id
from shared.provenance.ports import ChainKey, ChainStore, Filters, Target
from shared.provenance.queries import MAX_CHAIN, iterate_pages
from shared.runtime import Runtime

_README: Final = """Audit bundle of the workspace {workspace}
Created {createdAt} by {createdBy}

manifest.json      the chains of this bundle, their files, and the results of their verification by the service
chains/            the records of each chain, oldest first
checkpoints/       the newest signed checkpoint of each chain
proofs/            proofs that the checkpoint covers the last record, or each record of a filtered chain
verifier-key.txt   the public key of the checkpoints
{receipts}report.html        a printable report for people; it is not evidence

Verify this bundle without the service, by the command of the client package:

    oi verify-file BUNDLE.zip --key KEY

KEY is the line of /.well-known/oi-checkpoint-key, obtained from another source than this bundle. Without --key, the
enclosed key is used. Then the result only means that the bundle agrees with itself.

SHA-256 of the other files:
"""


_RECEIPTS: Final = """receipts/          the receipt (RFC 9942) of each record that the checkpoint of its chain covers
verifier-key.cbor  the public keys of the checkpoints and receipts, as a COSE_KeySet
"""


def build_readme(manifest: Mapping[str, Any], digests: Mapping[str, str]) -> bytes:
    """Build the README file of a bundle; it ends with the digests of all other files of the bundle."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    receipts = _RECEIPTS if KEY_SET in digests else ""
    named = {name: _to_one_line(manifest[name]) for name in _NAMED}
    return (_README.format(**named, receipts=receipts) + lines).encode()


_NAMED: Final = ("workspace", "createdAt", "createdBy")


async def render_bundle_report(
    store: ChainStore, manifest: Mapping[str, Any], selections: Sequence[tuple[ChainKey, Filters]], runtime: Runtime
) -> AsyncIterator[bytes]:
    """Render the printable report of a bundle part by part: the list of chains, then the amendments.

    Args:
        store: store of the chains.
        manifest: content of the bundle's file ``manifest.json``.
        selections: chains of the bundle, and the filters of their records.
        runtime: source of worker threads.
    """
    yield _render_overview(manifest).encode()
    for chain, filters in selections:
        if chain.target is Target.DOMAIN_AMENDMENTS:
            async for part in _render_amendments(store, chain, filters, runtime):
                yield part
    yield b"</body></html>\n"


def _render_overview(manifest: Mapping[str, Any]) -> str:
    rows = "".join(map(_render_chain, manifest["chains"]))
    filters = ", ".join(f"{name} {value}" for name, value in manifest["filters"].items() if value) or "none"
    return (
        f"{render_page_start(f'Audit bundle of {manifest["workspace"]}')}"
        f"<p>Created {escape(manifest['createdAt'])} by {escape(manifest['createdBy'])}. "
        f"Filters: {escape(filters)}.</p>"
        "<table><thead><tr><th>Target</th><th>Scope</th><th>Records</th><th>Complete</th><th>Result</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _render_chain(entry: Mapping[str, Any]) -> str:
    verdict = entry["verdict"]
    result = "not verified as a whole, because filters exclude records" if verdict is None else verdict["Reason"]
    if verdict is not None and not verdict["ChainValid"]:
        result = f"broken at {verdict['BrokenAt']}: {result}"
    values = (entry["target"], entry["scopeKey"] or "", entry["records"], "yes" if entry["complete"] else "no", result)
    return "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in values) + "</tr>"


async def _render_amendments(
    store: ChainStore, chain: ChainKey, filters: Filters, runtime: Runtime
) -> AsyncIterator[bytes]:
    """Render the first amendments (corrections of records) of a chain, each with its approval or rejection."""
    yield f"<h2>Amendments of scope {escape(chain.scope_key)}</h2>".encode()
    shown = 0
    async for page, _, _ in iterate_pages(store, chain, filters, newest_first=False, most=100):
        amendments = [record for record in page if not read_decided_amendment_id(record)][: MAX_CHAIN - shown]
        ids = [format_record_id(record.sequence) for record in amendments]
        decided = await find_decisions(store, chain, ids, runtime=runtime)
        for record in amendments:
            yield (await runtime.run_in_thread(render_amendment, record, decided)).encode()
        shown += len(amendments)
        if shown >= MAX_CHAIN:
            yield f'<p class="notice">Only the first {MAX_CHAIN} amendments of this scope are shown.</p>'.encode()
            return


def _to_one_line(value: object) -> str:
    return " ".join(str(value).split())
