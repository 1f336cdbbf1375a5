"""Liveness and readiness probes."""

import asyncio
from contextlib import suppress
from typing import Final, Literal, NotRequired, TypedDict

from shared.auth.rights import AccessRight
from shared.disk_space.guard import DiskState
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, build_json_reply
from shared.http.operation_docs import DocumentedReply, OperationDocs
from shared.http.operations import Access, Call, Group, read_authorization_header
from shared.http.unknown_names import UnknownNames
from shared.observability.logs import get_logger
from shared.observability.readiness import READY_SECONDS, list_running_background_work
from shared.wiring import services

GROUP = Group("health")

SLOW_CHECK_SECONDS: Final = 0.5
"""Duration of the checks, in seconds, after which the caller's rights are read although no check has failed yet."""

_LOG = get_logger("health")


class Alive(TypedDict):
    """Reply of the liveness probe."""

    status: Literal["alive"]


class Ready(TypedDict):
    """Reply of the readiness probe.

    `running` names background work, and `warnings` names conditions that an operator must end; each is missing if there
    is none.
    """

    status: Literal["ready"]
    warnings: NotRequired[list[Literal["DISK_NEARLY_FULL", "DISK_FULL", "ENTRA_AUTH_TIME_MISSING"]]]
    running: NotRequired[list[str]]


ALIVE_DOCS = OperationDocs((DocumentedReply(200, "The process runs.", Alive, {"status": "alive"}),))
READY_DOCS = OperationDocs(
    (DocumentedReply(200, "The stores and the query engine respond.", Ready, {"status": "ready"}),),
    error_statuses=(503,),
)


@GROUP.endpoint("GET", "healthz", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=ALIVE_DOCS)
async def alive(_: Call) -> Reply:
    """Return 200 if the process runs."""
    return build_json_reply({"status": "alive"})


@GROUP.endpoint("GET", "readyz", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=READY_DOCS)
async def ready(call: Call) -> Reply:
    """Return 200 if the stores and the query engine respond, else 503.

    Warnings do not change the status. `DISK_NEARLY_FULL`: make disk space available soon. `DISK_FULL`: telemetry is
    rejected with 507. `ENTRA_AUTH_TIME_MISSING`: people who sign in with Entra ID cannot sign decisions; configure
    Entra ID to include the claim `auth_time` in its tokens.

    The 503 reply lists the failing dependencies if the caller has the right to read the catalog. The list is omitted if
    the right cannot be read within 5 s, for example because the store of credentials fails.
    """
    # Reading the rights overlaps slow checks, because stores that do not respond can delay both by the full timeout.
    has_failure = asyncio.Event()
    reading = asyncio.create_task(_can_caller_read_catalog(call, has_failure))
    try:
        if failing := await services().readiness.list_failing_dependencies():
            has_failure.set()
            details = {"failing": failing} if await reading else {}
            raise WorkspaceError(
                Kind.UNAVAILABLE, "NOT_READY", "A store or the query engine does not respond.", **details
            )
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    lists = {"warnings": await _list_readiness_warnings(), "running": list_running_background_work()}
    return build_json_reply({"status": "ready", **{name: values for name, values in lists.items() if values}})


async def _list_readiness_warnings() -> list[str]:
    disk = await services().backends.disk_guard.read_disk_state()
    warnings = [] if disk is DiskState.OK else [disk.value]
    if services().access.authenticator.lacks_entra_time and await _is_any_signature_required():
        warnings.append("ENTRA_AUTH_TIME_MISSING")
    return warnings


async def _is_any_signature_required() -> bool:
    """Return whether any decision needs a signature; False if the catalog cannot be read."""
    try:
        return (await services().catalog.get_current_catalog()).policies.signatures.is_required
    except WorkspaceError:
        return False


async def _can_caller_read_catalog(call: Call, has_failure: asyncio.Event) -> bool:
    """Authenticate the caller of the readiness probe, and return whether the caller may read the catalog.

    Before that, wait until ``has_failure`` is set or ``SLOW_CHECK_SECONDS`` have passed. A ready service replies
    earlier and cancels this function, so it neither verifies a credential nor records its use. Return False if the
    credential is invalid, or cannot be verified within ``READY_SECONDS``.
    """
    try:
        async with asyncio.timeout(READY_SECONDS):
            with suppress(TimeoutError):
                await asyncio.wait_for(has_failure.wait(), SLOW_CHECK_SECONDS)
            caller = await services().access.authenticator(
                read_authorization_header(call.request), Access.KEY_OR_TOKEN.value
            )
    except (WorkspaceError, TimeoutError):
        return False
    except Exception:  # noqa: BLE001  no error of the authentication may hide that a dependency fails
        _LOG.exception("the caller of the readiness probe cannot be authenticated")
        return False
    return AccessRight.CATALOG_READ in caller.rights
