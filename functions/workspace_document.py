"""HTTP operations on the whole workspace as one document: export, plan, apply."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, NamedTuple

from functions.conditions import parse_conditional_headers
from functions.idempotency import reject_reused_idempotency_key
from functions.reply_docs import workspace_document as replies
from functions.reply_docs.workspace_document import YAML, DocumentWarning, PlanAction
from shared.alerts.document_checks import check_document_rules_and_return_outage
from shared.auth.rights import AccessRight
from shared.catalog.change_rules import Caller, can_see_items
from shared.catalog.checks import iterate_warnings
from shared.catalog.diff import ItemChange
from shared.catalog.document import DocumentFormat, LoadedDocument
from shared.catalog.document_plans import DocumentPlan, check_if_match_has_plan_tag
from shared.catalog.items import ItemKind
from shared.catalog.problems import DocumentError, Problem
from shared.catalog.yaml_writer import iterate_yaml_parts
from shared.errors import Kind, WorkspaceError
from shared.http.messages import JSON, Reply, Request
from shared.http.negotiation import choose_media_type
from shared.http.operations import MIB, Call, Group, RawBody
from shared.text_formats.json_comparison import is_same_json
from shared.text_formats.serialisation import serialise_json
from shared.timestamps import format_rfc3339
from shared.warm_queries.document_checks import check_document_queries_and_return_outage
from shared.wiring import services

GROUP = Group("workspace-document")
_ROUTE: Final = "oi-api/workspace/document"
_BODY_LIMIT: Final = 16 * MIB
_MAX_ERRORS: Final = 1_000
_MAX_DETAILED: Final = 10
"""Maximum number of errors that the reply's `detail` describes; the property `errors` lists up to 1,000."""
_YAML_TYPES: Final = frozenset({YAML, "application/x-yaml", "text/yaml", "text/x-yaml"})
_PLAN_SECONDS: Final = 0.5
_APPLY_SECONDS: Final = 3.0
"""Seconds in which the query engine may validate changed queries; a document can contain thousands of them."""


@GROUP.endpoint(
    "GET", _ROUTE, right=AccessRight.CATALOG_READ, further_rights=(AccessRight.TEAM_READ,), docs=replies.EXPORTED
)
async def export_workspace_document(call: Call) -> Reply:
    """Return the whole current workspace as a document, including the items that the API created."""
    document = await services().workspace_documents.documents.export()
    form = choose_media_type(call.request.headers.get("accept", ""), (JSON, YAML))
    body = await services().runtime.run_in_thread(_serialise_document, document, form)
    return Reply(200, body, {"Content-Type": form, "Vary": "Accept"})


@GROUP.endpoint(
    "POST",
    f"{_ROUTE}/plan",
    right=AccessRight.CATALOG_MANAGE,
    body=RawBody,
    body_limit=_BODY_LIMIT,
    docs=replies.PLANNED,
)
async def plan_workspace_document(call: Call[Any, RawBody]) -> Reply:
    """Return the changes that applying a document would make, and change nothing."""
    async with reject_reused_idempotency_key(call), _open_document(call.request) as loaded:
        plan = await services().workspace_documents.documents.plan(loaded, Caller.from_principal(call.principal))
        warnings = [
            *await _list_document_warnings_in_thread(loaded, plan),
            *await _check_with_engine_and_list_warnings(
                loaded, plan, _PLAN_SECONDS, call.principal.rights, raises_errors=False
            ),
        ]
        return await _build_plan_reply(plan, warnings, call.principal.rights)


@GROUP.endpoint(
    "PUT", _ROUTE, right=AccessRight.CATALOG_MANAGE, body=RawBody, body_limit=_BODY_LIMIT, docs=replies.APPLIED
)
async def apply_workspace_document(call: Call[Any, RawBody]) -> Reply:
    """Change the workspace to match a document; If-Match must contain the tag of the plan."""
    condition = parse_conditional_headers(call.request)
    caller = Caller.from_principal(call.principal)
    documents = services().workspace_documents.documents
    async with _open_document(call.request) as loaded:
        plan = await documents.plan(loaded, caller)
        check_if_match_has_plan_tag(condition, plan.tag)
        warnings = [
            *await _list_document_warnings_in_thread(loaded, plan),
            *await _check_with_engine_and_list_warnings(
                loaded, plan, _APPLY_SECONDS, call.principal.rights, raises_errors=True
            ),
        ]
        applied = await documents.apply(loaded, caller, condition)
        return await _build_plan_reply(applied, warnings, call.principal.rights)


@asynccontextmanager
async def _open_document(request: Request) -> AsyncIterator[LoadedDocument]:
    """Context manager: parse and validate the workspace document in a request, yield it, and free it at the end.

    Raises:
        WorkspaceError: INVALID if the document cannot be parsed or is not valid, or if the block raises a
            ``DocumentError``. The error lists the first problems with their positions in the document.
    """
    media_type = request.media_type
    text_format = DocumentFormat.YAML if media_type in _YAML_TYPES else DocumentFormat.JSON
    documents = services().workspace_documents.documents
    try:
        loaded = await documents.load(request.body, text_format)
    except DocumentError as error:
        raise _to_workspace_error(error, text_format) from error
    try:
        yield loaded
    except DocumentError as error:
        raise _to_workspace_error(error, text_format) from error
    finally:
        await documents.release(loaded)


class _EngineCheck(NamedTuple):
    """Check of one list of a workspace document, such as ``warmQueries``, with the query engine.

    Attributes:
        field: name of the list.
        rejection: start of the warning about an error of the document, such as "the query engine rejects this query".
        incompleteness: start of the warning that the engine is unavailable or too slow, such as "not all queries were
            validated by the engine".
        run: runs the check; returns the error of the engine if it is unavailable or too slow, and raises
            ``DocumentError`` for errors of the document.
    """

    field: str
    rejection: str
    incompleteness: str
    run: Callable[[], Awaitable[WorkspaceError | None]]

    def build_outage_warning(self, outage: WorkspaceError) -> DocumentWarning:
        """Return the warning that the engine is unavailable or too slow for this check."""
        return {"field": self.field, "message": f"{self.incompleteness}: {outage.detail}"}


async def _check_with_engine_and_list_warnings(
    loaded: LoadedDocument,
    plan: DocumentPlan,
    max_seconds: float,
    rights: frozenset[AccessRight],
    *,
    raises_errors: bool,
) -> list[DocumentWarning]:
    """Validate changed queries, and then the columns of changed alert rules, with the engine; return the warnings.

    Args:
        loaded: the workspace document.
        plan: the changes that the document requires.
        max_seconds: time after which no further query is validated.
        rights: rights of the caller.
        raises_errors: whether errors of queries and rules are raised; otherwise, they are warnings that PUT will fail.

    Raises:
        DocumentError: the engine rejects queries, or a query lacks a column of its rule.
    """
    queries = _EngineCheck(
        "warmQueries",
        "the query engine rejects this query",
        "not all queries were validated by the engine",
        partial(_validate_queries_and_return_outage, loaded, plan, max_seconds),
    )
    columns = _EngineCheck(
        "alertRules",
        "the alert rule does not fit its query",
        "not all columns were checked by the engine",
        partial(_check_rule_columns_and_return_outage, loaded, plan, rights),
    )
    warnings: list[DocumentWarning] = []
    for check in (queries, columns):
        try:
            outage = await check.run()
        except DocumentError as error:
            if raises_errors:
                raise
            warnings += _errors_to_warnings(check.rejection, error)
            continue
        if outage is not None:
            warnings.append(check.build_outage_warning(outage))
            # The next check would only wait for an engine that is unavailable; after a timeout it can succeed.
            if outage.kind is not Kind.TIMEOUT:
                if check is queries and any(use.query is not None for use in plan.query_uses):
                    warnings.append(columns.build_outage_warning(outage))
                break
    return warnings


async def _validate_queries_and_return_outage(
    loaded: LoadedDocument, plan: DocumentPlan, max_seconds: float
) -> WorkspaceError | None:
    changed = {
        change.key
        for change in plan.plan.changes
        if change.kind == ItemKind.WARM_QUERY and _has_new_kql_or_parameters(change)
    }
    return await check_document_queries_and_return_outage(
        loaded, services().queries.columns, query_lookups=changed, max_seconds=max_seconds, runtime=services().runtime
    )


async def _check_rule_columns_and_return_outage(
    loaded: LoadedDocument, plan: DocumentPlan, rights: frozenset[AccessRight]
) -> WorkspaceError | None:
    return await check_document_rules_and_return_outage(
        loaded,
        plan.query_uses,
        services().queries.columns,
        is_query_readable=AccessRight.CATALOG_READ in rights,
        runtime=services().runtime,
    )


def _errors_to_warnings(reason: str, error: DocumentError) -> list[DocumentWarning]:
    return [
        {
            "field": problem.field,
            "message": f"{reason}, so PUT will fail: {problem.message}",
            "line": problem.line,
            "column": problem.column,
        }
        for problem in error.problems[:_MAX_ERRORS]
    ]


def _has_new_kql_or_parameters(change: ItemChange) -> bool:
    before, after = change.before or {}, change.after or {}
    return change.after is not None and not all(
        is_same_json(before.get(name), after[name]) for name in ("kql", "parameters")
    )


async def _list_document_warnings_in_thread(loaded: LoadedDocument, plan: DocumentPlan) -> list[DocumentWarning]:
    return await services().runtime.run_in_thread(_list_document_warnings, loaded, plan)


def _list_document_warnings(loaded: LoadedDocument, plan: DocumentPlan) -> list[DocumentWarning]:
    if not (found := list(iterate_warnings(loaded.document, plan.plan.retained_query_lookups))):
        return []
    return [
        {"field": problem.field, "message": problem.message, "line": problem.line, "column": problem.column}
        for problem in loaded.build_error_with_positions(found).problems
    ]


def _to_workspace_error(error: DocumentError, text_format: DocumentFormat) -> WorkspaceError:
    """Convert the problems of a workspace document to one error that lists the first problems with their positions."""
    problems = error.problems
    detail = "; ".join(map(_describe_problem, problems[:_MAX_DETAILED]))
    if len(problems) > _MAX_DETAILED:
        detail += f"; and {len(problems) - _MAX_DETAILED} more"
    listed = [
        {
            "field": problem.field or "body",
            "message": problem.message,
            "line": problem.line,
            "column": problem.column,
        }
        for problem in problems[:_MAX_ERRORS]
    ]
    if error.code:
        reason = problems[0].message
        return WorkspaceError(Kind.INVALID, error.code, detail, errors=listed, reason=reason)
    if problems[0].field:
        return WorkspaceError(Kind.INVALID, "INVALID_REQUEST", detail, errors=listed)
    if text_format is DocumentFormat.JSON:
        return WorkspaceError(Kind.INVALID, "BODY_NOT_JSON", detail, errors=listed)
    return WorkspaceError(Kind.INVALID, "BODY_NOT_YAML", detail, errors=listed)


def _describe_problem(problem: Problem) -> str:
    return f"line {problem.line}, column {problem.column}: {problem.field or 'body'}: {problem.message}"


async def _build_plan_reply(
    plan: DocumentPlan, warnings: list[DocumentWarning], rights: frozenset[AccessRight]
) -> Reply:
    body = await services().runtime.run_in_thread(_serialise_plan_as_json, plan, warnings, rights)
    return Reply(200, body, {"Content-Type": JSON})


def _serialise_plan_as_json(
    plan: DocumentPlan, warnings: list[DocumentWarning], rights: frozenset[AccessRight]
) -> bytes:
    """Serialise a plan (the changes that applying a document would make) as JSON.

    The plan also lists items that stay although the document does not declare them, or declares something else. Those
    that the caller may not see are omitted. Each change is serialised separately, because one call for a large plan
    would block all other threads.
    """
    changes = b",".join(serialise_json(_change_to_json(change, plan)) for change in plan.plan.changes)
    kept = b",".join(
        serialise_json({"kind": item.kind, "key": item.key, "reason": item.reason})
        for item in plan.plan.retained
        if can_see_items(ItemKind(item.kind), rights)
    )
    rest = serialise_json({"planTag": plan.tag, "warnings": warnings})
    return b'{"changes":[%b],"kept":[%b],%b' % (changes, kept, rest.removeprefix(b"{"))


def _change_to_json(change: ItemChange, plan: DocumentPlan) -> dict[str, Any]:
    action = PlanAction.ADDED if change.before is None else PlanAction.CHANGED
    if change.after is None:
        action = PlanAction.REMOVED
    shown: dict[str, Any] = {
        "action": action,
        "kind": change.kind,
        "key": change.key,
        "before": change.before,
        "after": change.after,
    }
    last = plan.last_changes.get((change.kind, change.key))
    return (
        shown if last is None else {**shown, "changedBy": last.changed_by, "changedAt": format_rfc3339(last.changed_at)}
    )


def _serialise_document(document: Mapping[str, Any], media_type: str) -> bytes:
    """Serialise a workspace document as JSON or YAML; serialise the items of JSON one after the other.

    One call for a large JSON document would block all other threads.
    """
    if media_type == YAML:
        return "".join(iterate_yaml_parts(document)).encode()
    members = (serialise_json(name) + b":" + _serialise_property_as_json(value) for name, value in document.items())
    return b"{%b}" % b",".join(members)


def _serialise_property_as_json(value: Any) -> bytes:
    return b"[%b]" % b",".join(map(serialise_json, value)) if isinstance(value, list) else serialise_json(value)
