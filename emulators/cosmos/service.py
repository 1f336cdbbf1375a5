"""Simulated Cosmos DB account without HTTP connections: executes parsed requests and returns their replies."""

import base64
import time
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache

from emulators.cosmos import data_plane
from emulators.cosmos.account import AccountOptions, ThroughputBudget, authenticate
from emulators.cosmos.control_plane import ControlPlane
from emulators.cosmos.faults import FaultKind, InjectedFault
from emulators.cosmos.wire import (
    ITEM_WRITES,
    MAX_BYTES,
    CosmosError,
    CosmosReply,
    CosmosRequest,
    build_unsupported_error,
)

DEFAULT_KEY = base64.b64encode(b"the Cosmos test server's own key").decode()
"""Default master key, valid only for test servers."""


class CosmosService:
    """Simulated Cosmos DB account.

    Args:
        key: The master key of the account, in Base64.
        options: Consistency, regions, throughput and authentication of the account.
        physical_partitions: The number of physical partitions of each container.
        clock: Returns the current time in seconds since 1970. Only the check of signatures uses the real time, because
            clients sign the real time.

    Attributes:
        endpoint: The URL of the account, which its properties state for every region.
    """

    def __init__(
        self,
        *,
        key: str = DEFAULT_KEY,
        options: AccountOptions | None = None,
        physical_partitions: int = 1,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.endpoint = ""
        self._key = key
        self._options = options or AccountOptions()
        self._clock = clock
        self._control = ControlPlane(physical_partitions, clock)
        self._budgets: dict[str, ThroughputBudget] = {}

    def execute(self, request: CosmosRequest, fault: InjectedFault | None = None) -> CosmosReply:
        """Execute a request and return the reply. The method is not asynchronous, so that each request is atomic.

        Args:
            request: The request; a body above the size limit is rejected.
            fault: A fault that replaces the execution by an error or shortens a page; other kinds of faults have no
                effect here.
        """
        try:
            self._authenticate(request)
            reply = _build_injected_reply_if_any(request, fault) or self._execute_operation(request, fault)
        except CosmosError as refusal:
            reply = refusal.build_reply()
        reply.headers |= {
            "content-type": "application/json",
            "date": _format_http_date(int(self._clock())),
            "x-ms-activity-id": request.read_header("x-ms-activity-id"),
            "x-ms-gatewayversion": "version=cosmos-test-server",
        }
        return reply

    def _authenticate(self, request: CosmosRequest) -> None:
        authenticate(request, self._key, self._options)

    def _execute_operation(self, request: CosmosRequest, fault: InjectedFault | None) -> CosmosReply:
        if len(request.body) > MAX_BYTES:
            raise CosmosError(413, "Request size is too large")
        self._options.check_requested_consistency(request)
        operation = request.operation
        if operation == "read_account":
            return CosmosReply(200, self._options.build_account_properties(self.endpoint))
        if operation == "query_plan":
            return data_plane.build_query_plan_reply(request)
        if operation in ITEM_WRITES or operation in ("read_item", "query", "read_feed"):
            return self._execute_on_container(request, fault)
        if operation == "list_offers":
            return self._control.query_offers(request)
        method = getattr(self._control, operation.replace("query_d", "list_d").replace("query_c", "list_c"), None)
        if operation == "unknown" or method is None:
            raise build_unsupported_error(f"{request.method} /{'/'.join(request.segments)}")
        reply: CosmosReply = method(request)
        return reply

    def _execute_on_container(self, request: CosmosRequest, fault: InjectedFault | None) -> CosmosReply:
        container = self._control.require_container(request)
        budget = self._get_throughput_budget_if_limited(container.rid)
        if budget is not None:
            budget.require_request_units(self._clock())
        if request.operation == "batch":
            reply = data_plane.execute_batch_request(container, request)
        elif request.operation in ("query", "read_feed"):
            partial = fault.page_size if fault and fault.kind is FaultKind.PARTIAL_PAGE else None
            reply = data_plane.execute_query(container, request, partial)
        else:
            reply = data_plane.execute_item_operation(container, request)
        if budget is not None:
            budget.spend_request_units(float(reply.headers.get("x-ms-request-charge", "0")))
        range_id = request.read_header("x-ms-documentdb-partitionkeyrangeid") or "0"
        link = "/".join(request.segments[:4])
        reply.headers |= {
            "x-ms-session-token": f"{range_id}:0#{container.lsn}",
            "x-ms-alt-content-path": link,
            "x-ms-content-path": container.rid,
            "lsn": str(container.lsn),
        }
        return reply

    def _get_throughput_budget_if_limited(self, rid: str) -> ThroughputBudget | None:
        if self._options.request_units is None:
            return None
        return self._budgets.setdefault(rid, ThroughputBudget(self._options.request_units))


@lru_cache(maxsize=16)
def _format_http_date(unix_seconds: int) -> str:
    """Return the value of the HTTP header `Date` for a time in seconds since 1970."""
    return formatdate(unix_seconds, usegmt=True)


def build_injected_error(fault: InjectedFault) -> CosmosError:
    """Return the error that a fault sends as the reply to a request."""
    return CosmosError(fault.status, f"A test injected this error: {fault.kind}", fault.substatus, fault.retry_after_ms)


def _build_injected_reply_if_any(request: CosmosRequest, fault: InjectedFault | None) -> CosmosReply | None:
    """Return the error reply if a fault prevents the execution of the request; None for any other fault."""
    if fault is None:
        return None
    if fault.kind is FaultKind.STATUS:
        return build_injected_error(fault).build_reply()
    if fault.kind is FaultKind.BATCH_STATUS:
        return data_plane.build_failed_batch_reply(request, build_injected_error(fault))
    return None
