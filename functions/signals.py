"""HTTP operations on signals (fields of telemetry payloads) of data connections: list declared ones, infer new ones."""

from typing import Any, Final

from functions.reply_docs import connections as replies
from shared.auth.rights import AccessRight
from shared.catalog.administration import build_connection_not_found_error
from shared.catalog.models import Connection
from shared.errors import WorkspaceError
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Call, Group
from shared.telemetry.signals import propose_signals_as_json
from shared.warm_queries.ports import EngineQuery, EngineResult
from shared.warm_queries.results import to_row_objects
from shared.wiring import services

GROUP = Group("signals")
_ROUTE: Final = "oi-api/connections/{lookup}/signals"

_TIMEOUT_SECONDS: Final = 20
_MESSAGES: Final = 500
_LARGE_MESSAGES: Final = 20
"""Number of messages to read if the query engine rejects the result of a larger number as too large."""

_TOO_LARGE: Final = "QUERY_TOO_LARGE"
_LAST_DAY: Final = "and Timestamp > ago(1d)"
_KQL: Final = """declare query_parameters(lookup:string);
Telemetry
| where ConnectionLookup == lookup {period}
| top {limit} by Timestamp desc
| project Payload"""


@GROUP.endpoint("GET", _ROUTE, right=AccessRight.CATALOG_READ, docs=replies.SIGNALS)
async def list_signals(call: Call) -> Reply:
    """Return the declared signals of a data connection."""
    connection = await _require_connection(call.path["lookup"])
    return build_json_reply(
        {"signals": [signal.model_dump(mode="json", by_alias=True) for signal in connection.signals]}
    )


@GROUP.endpoint("POST", f"{_ROUTE}/infer", right=AccessRight.CATALOG_MANAGE, docs=replies.INFERRED)
async def infer_connection_signals(call: Call) -> Reply:
    """Propose signals from the newest messages of a data connection; nothing is stored."""
    connection = await _require_connection(call.path["lookup"])
    # The newest messages of the last day are sufficient; a connection without any is read completely.
    newest = await _query_newest_payloads(connection.lookup, _LAST_DAY)
    if not newest.rows:
        newest = await _query_newest_payloads(connection.lookup, "")
    return build_json_reply(await services().runtime.run_in_thread(_infer_signals_as_json, newest))


def _infer_signals_as_json(newest_payloads: EngineResult) -> dict[str, Any]:
    payloads = [row["Payload"] for row in to_row_objects(newest_payloads.columns, newest_payloads.rows)]
    payloads = [payload for payload in payloads if isinstance(payload, dict)]
    return {"messages": len(payloads), "signals": propose_signals_as_json(payloads)}


async def _require_connection(connection_lookup: str) -> Connection:
    catalog = await services().catalog.get_current_catalog()
    if connection_lookup not in catalog.connections:
        raise build_connection_not_found_error(connection_lookup)
    return catalog.connections[connection_lookup].value


async def _query_newest_payloads(connection_lookup: str, period_kql: str) -> EngineResult:
    """Return the newest payloads of a connection; request fewer if the engine rejects the result as too large."""
    engine = services().queries.engine
    try:
        return await engine.execute(_build_payload_query(connection_lookup, period_kql, _MESSAGES))
    except WorkspaceError as error:
        if error.code != _TOO_LARGE:
            raise
        return await engine.execute(_build_payload_query(connection_lookup, period_kql, _LARGE_MESSAGES))


def _build_payload_query(connection_lookup: str, period_kql: str, max_rows: int) -> EngineQuery:
    return EngineQuery(
        _KQL.format(period=period_kql, limit=max_rows), {"lookup": connection_lookup}, max_rows, _TIMEOUT_SECONDS
    )
