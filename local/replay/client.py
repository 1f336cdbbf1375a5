"""Posts telemetry to the service, and keeps at it while the service or the way to it is down."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp

from local.replay.errors import ReplayError
from local.replay.rows import CsvRow
from local.replay.service import NoHostError, TargetService

ATTEMPTS = 10
MAX_WAIT_SECONDS = 30.0
TIMEOUT = aiohttp.ClientTimeout(total=60)
_PROBE_TIMEOUT = aiohttp.ClientTimeout(total=4)
_RETRIED_STATUSES = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """What the service said: status, JSON body (empty where it was none), seconds of Retry-After if it gave any."""

    status: int
    body: dict[str, Any]
    retry_after: float | None


class TelemetryClient:
    """Sends a connection's telemetry with tokens that it gets with an API key.

    Args:
        session: an HTTP session of ``checked_session``; its maker closes it.
        service: where the service is.
        connection: the connection's lookup.
        api_key: of a principal that may write telemetry; it is sent to ``service`` alone.
        first_wait: seconds before the first further attempt; doubles from there.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        service: TargetService,
        connection: str,
        api_key: str,
        *,
        first_wait: float = 0.5,
    ) -> None:
        self._session = session
        self._service = service
        self._connection = connection
        self._api_key = api_key
        self._first_wait = first_wait
        self._token = ""
        self._signing_in = asyncio.Lock()

    async def probe(self) -> None:
        """Return if the service answers, with whatever status.

        Raises:
            ReplayError: nothing answers within four seconds.
        """
        endpoint = self._service.locate()
        url = endpoint.address + "/healthz"
        try:
            async with self._session.get(
                url, timeout=_PROBE_TIMEOUT, allow_redirects=False, trace_request_ctx=endpoint
            ):
                pass
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ReplayError(f"{endpoint.address} does not answer: {type(error).__name__}") from None

    async def post(self, rows: Sequence[CsvRow]) -> int:
        """Send rows and return how many the service accepted; sent twice, they count once there.

        Raises:
            ReplayError: the service refuses them, or has not answered in ten attempts.
        """
        body = b"[" + b",".join(row.message for row in rows) + b"]"
        path = f"/oi-api/telemetry/{self._connection}"
        token = await self._sign_in(stale="")
        answer = await self._persist("POST", path, token, body)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            token = await self._sign_in(stale=token)
            answer = await self._persist("POST", path, token, body)
        if answer.status != HTTPStatus.ACCEPTED:
            raise ReplayError(f"{rows[0].place} to {rows[-1].place}: {_describe(answer)}")
        return int(answer.body.get("accepted", len(rows)))

    async def _sign_in(self, *, stale: str) -> str:
        """Return a token other than the stale one; all tasks that ask share it."""
        async with self._signing_in:
            if self._token == stale:
                path = "/workspace/api/keys/jwt?scopes=Workspace.Telemetry.Write"
                answer = await self._persist("GET", path, self._api_key, None)
                token = answer.body.get("Token")
                if answer.status != HTTPStatus.OK or not isinstance(token, str):
                    raise ReplayError(f"no token for the API key: {_describe(answer)}")
                self._token = token
            return self._token

    async def _persist(self, method: str, path: str, bearer: str, body: bytes | None) -> ServiceResponse:
        wait = self._first_wait
        trouble = ""
        for _ in range(ATTEMPTS):
            try:
                answer = await self._request(method, path, bearer, body)
            except (aiohttp.ClientError, TimeoutError) as error:
                trouble, pause = type(error).__name__, None
            except NoHostError as error:
                # It may come back, at another address.
                trouble, pause = str(error), None
            else:
                if answer.status not in _RETRIED_STATUSES:
                    return answer
                trouble, pause = _describe(answer), answer.retry_after
            jittered = wait * random.uniform(0.8, 1.2)  # noqa: S311  spreads load, guards nothing
            await asyncio.sleep(min(jittered if pause is None else pause, MAX_WAIT_SECONDS))
            wait = min(wait * 2, MAX_WAIT_SECONDS)
        raise ReplayError(f"the service does not accept the request after {ATTEMPTS} attempts: {trouble}")

    async def _request(self, method: str, path: str, bearer: str, body: bytes | None) -> ServiceResponse:
        headers = {"Authorization": f"Bearer {bearer}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        endpoint = self._service.locate()
        # A redirect would carry the credential elsewhere.
        async with self._session.request(
            method,
            endpoint.address + path,
            headers=headers,
            data=body,
            timeout=TIMEOUT,
            allow_redirects=False,
            trace_request_ctx=endpoint,
        ) as response:
            return ServiceResponse(
                response.status, await _json(response), _seconds(response.headers.get("Retry-After", ""))
            )


async def _json(response: aiohttp.ClientResponse) -> dict[str, Any]:
    try:
        body = await response.json(content_type=None)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _seconds(text: str) -> float | None:
    # The other form, a date, is none that this service gives.
    return float(text) if text.isascii() and text.isdecimal() else None


def _describe(answer: ServiceResponse) -> str:
    code, detail = answer.body.get("code", ""), answer.body.get("detail", "")
    return " ".join(str(part) for part in (answer.status, code, detail) if part)
