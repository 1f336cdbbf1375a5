"""Telemetry client that retries while the service is unavailable.

It knows neither the files nor the options of the command that sends the rows.
"""

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
    """Response of the service: status, JSON object (empty for another body), seconds of Retry-After if present."""

    status: int
    body: dict[str, Any]
    retry_after: float | None


class TelemetryClient:
    """Client that sends telemetry of a connection, with tokens for an API key.

    Args:
        session: an HTTP session of ``checked_session``, closed by the caller.
        service: the service.
        connection: the connection's lookup.
        api_key: key of a principal with the right to write telemetry; sent to ``service`` only.
        first_wait: seconds before the first retry; doubled for each further one.
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
        """Check that the service responds, with any status.

        Raises:
            ReplayError: the service does not respond within four seconds.
        """
        endpoint = self._service.locate()
        url = endpoint.address + "/healthz"
        try:
            async with self._session.get(
                url, timeout=_PROBE_TIMEOUT, allow_redirects=False, trace_request_ctx=endpoint
            ):
                pass
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ReplayError(f"{endpoint.address} does not respond: {type(error).__name__}") from None

    async def post(self, rows: Sequence[CsvRow]) -> int:
        """Send rows and return the number of accepted ones; the service stores repeated messages once.

        Raises:
            ReplayError: the service rejects them, or does not accept them in ten attempts.
        """
        body = b"[" + b",".join(row.message for row in rows) + b"]"
        path = f"/oi-api/telemetry/{self._connection}"
        token = await self._sign_in(stale="")
        response = await self._request_with_retries("POST", path, token, body)
        if response.status == HTTPStatus.UNAUTHORIZED:
            token = await self._sign_in(stale=token)
            response = await self._request_with_retries("POST", path, token, body)
        if response.status != HTTPStatus.ACCEPTED:
            raise ReplayError(f"{rows[0].place} to {rows[-1].place}: {_describe(response)}")
        return int(response.body.get("accepted", len(rows)))

    async def _sign_in(self, *, stale: str) -> str:
        """Return a token other than the stale one, shared by all tasks."""
        async with self._signing_in:
            if self._token == stale:
                path = "/workspace/api/keys/jwt?scopes=Workspace.Telemetry.Write"
                response = await self._request_with_retries("GET", path, self._api_key, None)
                token = response.body.get("Token")
                if response.status != HTTPStatus.OK or not isinstance(token, str):
                    raise ReplayError(f"no token for the API key: {_describe(response)}")
                self._token = token
            return self._token

    async def _request_with_retries(self, method: str, path: str, bearer: str, body: bytes | None) -> ServiceResponse:
        wait = self._first_wait
        problem = ""
        for _ in range(ATTEMPTS):
            try:
                response = await self._request(method, path, bearer, body)
            except (aiohttp.ClientError, TimeoutError) as error:
                problem, pause = type(error).__name__, None
            except NoHostError as error:
                # The host may restart at another address.
                problem, pause = str(error), None
            else:
                if response.status not in _RETRIED_STATUSES:
                    return response
                problem, pause = _describe(response), response.retry_after
            jittered = wait * random.uniform(0.8, 1.2)  # noqa: S311  spreads load, guards nothing
            await asyncio.sleep(min(jittered if pause is None else pause, MAX_WAIT_SECONDS))
            wait = min(wait * 2, MAX_WAIT_SECONDS)
        raise ReplayError(f"the service does not accept the request after {ATTEMPTS} attempts: {problem}")

    async def _request(self, method: str, path: str, bearer: str, body: bytes | None) -> ServiceResponse:
        headers = {"Authorization": f"Bearer {bearer}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        endpoint = self._service.locate()
        # A redirect would send the credential to another server.
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
                response.status, await _read_json(response), _parse_seconds(response.headers.get("Retry-After", ""))
            )


async def _read_json(response: aiohttp.ClientResponse) -> dict[str, Any]:
    try:
        body = await response.json(content_type=None)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _parse_seconds(text: str) -> float | None:
    # The service never sends the date form.
    return float(text) if text.isascii() and text.isdecimal() else None


def _describe(response: ServiceResponse) -> str:
    code, detail = response.body.get("code", ""), response.body.get("detail", "")
    return " ".join(str(part) for part in (response.status, code, detail) if part)
