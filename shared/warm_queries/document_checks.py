"""Validation of a workspace document's queries by the query engine."""

from shared.catalog.document import locate_findings
from shared.catalog.models import WorkspaceDocument
from shared.catalog.problems import Path
from shared.catalog.query_checks import format_kql_error
from shared.errors import Kind, WorkspaceError
from shared.warm_queries.columns import QueryColumns


async def check_document_queries(
    document: WorkspaceDocument, text: str, source: str, columns: QueryColumns
) -> WorkspaceError | None:
    """Validate a document's queries with the engine; return the engine's error if it is unavailable, else None.

    Args:
        document: a valid document.
        text: YAML text of the document.
        source: file name for the problems.
        columns: resolves columns with the engine.

    Raises:
        DocumentError: if the engine rejects queries.
    """
    findings: list[tuple[Path, str]] = []
    unavailable: WorkspaceError | None = None
    for index, query in enumerate(document.warm_queries):
        try:
            await columns.resolve(query)
        except WorkspaceError as error:
            if error.kind is not Kind.INVALID:
                # The other queries would only wait for the same timeout.
                unavailable = error
                break
            findings.append((("warmQueries", index, "kql"), format_kql_error(error)))
    if findings:
        raise locate_findings(text, source, findings)
    return unavailable
