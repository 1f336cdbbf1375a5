"""HTTP operations on signals (fields of telemetry payloads) of data connections: list declared ones, infer new ones."""

from typing import Any, Final

from functions.reply_docs import connections as replies
from shared.auth.rights import AccessRight
from shared.catalog.administration import build_connection_not_found_error
from shared.catalog.models import Connection
from shared.errors import WorkspaceError
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Call, Group
from shared.telemetry.signals import infer_signals
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
    return build_json_reply(await services().runtime.run_in_thread(_propose_signals, newest))


def _propose_signals(newest: EngineResult) -> dict[str, Any]:
    payloads = [row["Payload"] for row in to_row_objects(newest.columns, newest.rows)]
    payloads = [payload for payload in payloads if isinstance(payload, dict)]
    return {"messages": len(payloads), "signals": infer_signals(payloads)}


async def _require_connection(lookup: str) -> Connection:
    catalog = await services().catalog.get_current_catalog()
    if lookup not in catalog.connections:
        raise build_connection_not_found_error(lookup)
    return catalog.connections[lookup].value


async def _query_newest_payloads(lookup: str, period: str) -> EngineResult:
    """Return the newest payloads of a connection; fewer if the engine rejects the result as too large."""
    engine = services().queries.engine
    try:
        return await engine.execute(_build_payload_query(lookup, period, _MESSAGES))
    except WorkspaceError as error:
        if error.code != _TOO_LARGE:
            raise
        return await engine.execute(_build_payload_query(lookup, period, _LARGE_MESSAGES))


def _build_payload_query(lookup: str, period: str, limit: int) -> EngineQuery:
    return EngineQuery(_KQL.format(period=period, limit=limit), {"lookup": lookup}, limit, _TIMEOUT_SECONDS)
