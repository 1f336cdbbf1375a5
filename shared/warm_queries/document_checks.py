"""The queries of a workspace document, held against the engine that is to run them."""

from shared.catalog.document import locate_findings
from shared.catalog.models import WorkspaceDocument
from shared.catalog.problems import Path
from shared.catalog.query_checks import format_kql_error
from shared.errors import Kind, WorkspaceError
from shared.warm_queries.columns import QueryColumns


async def check_document_queries(
    document: WorkspaceDocument, text: str, source: str, columns: QueryColumns
) -> WorkspaceError | None:
    """Have the engine bind a document's queries; return why it could not be asked, None where it was.

    Args:
        document: a document that was loaded without problems.
        text: its YAML.
        source: name of the file, for the problems.
        columns: asks the engine.

    Raises:
        DocumentError: the engine refuses queries.
    """
    findings: list[tuple[Path, str]] = []
    silent: WorkspaceError | None = None
    for index, query in enumerate(document.warm_queries):
        try:
            await columns.resolve(query)
        except WorkspaceError as error:
            if error.kind is not Kind.INVALID:
                # Another query would wait as long for nothing.
                silent = error
                break
            findings.append((("warmQueries", index, "kql"), format_kql_error(error)))
    if findings:
        raise locate_findings(text, source, findings)
    return silent
