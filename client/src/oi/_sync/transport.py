"""HTTP requests to the service: authentication, retries, and conversion of error replies to exceptions."""

import copy
import time
from collections.abc import Iterator, Callable, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from oi._sync.waiting import Lock, sleep
from oi.addresses import can_use_proxy, check_address_has_no_user_name
from oi.credentials import RenewableToken, Token, check_credential_characters, parse_token_reply
from oi.errors import REAUTHENTICATION_REQUIRED, ApiError, InvalidRequestError, SignInError, UnreachableError
from oi.requests import (
    MAX_ATTEMPTS,
    SLOW_REPLY_SECONDS,
    build_proxy_error,
    build_request_headers,
    build_signed_link_request,
    can_method_change_data,
    find_error,
    find_error_of_uncertain_change,
    find_retry_delay_seconds,
    has_failed_before_sending,
    has_invalid_certificate,
    is_outcome_uncertain,
    is_safe_to_repeat,
    parse_json_reply,
)

_TOKENS = "/workspace/api/keys/jwt"


class Transport:
    """Sends requests with an access token; a token for an API key is renewed before it expires.

    Args:
        url: address of the service, for instance ``https://plant.example``.
        key: API key, exchanged for tokens.
        token: JWT, or a function that returns a valid JWT and is called before each request. A rejected token of a
            :class:`~oi.credentials.RenewableToken` is renewed.
        scopes: access rights of the tokens; None for all rights of the key.
        timeout: seconds to wait for a connection or for the next part of a reply; a slow request waits at least 240 s
            for its reply.
        max_attempts: maximum number of attempts of one request; 1 for a caller that repeats requests itself.

    Attributes:
        newest_token: token that `get_token` returned last; empty before its first call.

    Raises:
        ValueError: both ``key`` and ``token`` are given, or neither; or one of the arguments has invalid characters, or
            the address contains a user name.
        UnreachableError: the proxy that the environment variables name cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        token: str | Callable[[], str] | None = None,
        scopes: list[str] | None = None,
        timeout: float = 60.0,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        if (key is None) == (token is None):
            raise ValueError("exactly one of the arguments `key` and `token` is required")
        for credential in (key, token):
            if isinstance(credential, str):
                # An error of the HTTP library would print the credential.
                check_credential_characters(credential)
        check_address_has_no_user_name(url)
        self.url = url.rstrip("/")
        try:
            httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise ValueError(f"{url!r} is not an address such as https://plant.example: {error}") from None
        try:
            self.client = httpx.Client(base_url=self.url, timeout=timeout, trust_env=can_use_proxy(self.url))
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise build_proxy_error(error) from None
        self._key = key
        self._source = token if callable(token) else None
        self._token = Token(token) if isinstance(token, str) else None
        self._scopes = scopes
        self._slow_timeout = httpx.Timeout(timeout, read=max(timeout, SLOW_REPLY_SECONDS))
        self._max_attempts = max_attempts
        self.newest_token = ""
        self._lock = Lock()

    def close(self) -> None:
        """Close all network connections to the service."""
        self.client.close()

    def copy_for_single_attempts(self) -> "Transport":
        """Return a transport with the same connections and credentials for a caller that repeats requests itself."""
        copied = copy.copy(self)
        copied._max_attempts = 1  # noqa: SLF001  same class
        return copied

    @property
    def can_renew_token(self) -> bool:
        """True if a token that the service rejects can be replaced by a new one."""
        return self._key is not None or isinstance(self._source, RenewableToken)

    def get_token(self, *, rejected_token: str = "") -> str:
        """Return the access token that was passed to the client, or a token for the API key.

        A token for the API key is valid for at least another minute, unless the key expires earlier.

        Args:
            rejected_token: token that the service has rejected, to get another one; without effect if the token cannot
                be renewed. Of several requests whose token was rejected, only the first one requests a new token.

        Raises:
            ApiError: the service issues no token.
            ValueError: the function that returns a token returned a text with invalid characters.
        """
        with self._lock:
            if self._source is not None:
                self.newest_token = _call_token_function(self._source, rejected_token)
            else:
                self.newest_token = self._get_token_text(rejected_token)
            return self.newest_token

    def _get_token_text(self, rejected_token: str) -> str:
        """Return the access token passed to the client, or a token for the API key other than ``rejected_token``."""
        token = self._token
        is_usable = token is not None and token.text != rejected_token and token.is_fresh(time.monotonic())
        if token is None or (self._key is not None and not is_usable):
            # No `minutes`: the service would reject a lifetime that ends after the expiry of the key.
            parameters = {} if self._scopes is None else {"scopes": ",".join(self._scopes)}
            requested_at = time.monotonic()
            reply = self._send_with_retries("GET", _TOKENS, self._key or "", changes_data=False, params=parameters)
            token = parse_token_reply(parse_json_reply(reply), reply.headers.get("Date", ""), requested_at)
            self._token = token
        return token.text

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        content: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        appends: bool = False,
        reads: bool = False,
        is_slow: bool = False,
    ) -> httpx.Response:
        """Send a request and return the reply.

        The request is sent again after a pause, or when the ``Retry-After`` of the reply has passed:

        - always, after a 429, after a 503 whose code shows that nothing was changed, or if no connection was opened;
        - only if a repetition is safe, after another 503, a 502 of a proxy, or a lost connection. It is safe for GET,
          HEAD, PUT, DELETE, and requests with an ``Idempotency-Key``.

        A request with an ``Idempotency-Key`` is also sent again while the service still works on an earlier attempt. If
        a repeated DELETE without ETag gets 404, the deletion counts as successful.

        Args:
            method: HTTP method.
            path: URL path, in which variable parts are percent-encoded.
            params: query parameters; parameters with the value None are left out.
            json: JSON body.
            content: body that is not JSON, as bytes.
            headers: further request headers.
            appends: True if a repetition would create something twice; the request then gets an ``Idempotency-Key``, by
                which the service recognises a repetition.
            reads: True for a POST that changes no data; it is sent again after each 503, and each 502 of a proxy.
            is_slow: True if the service may work for minutes before it replies. If no reply comes in that time, the
                request is not sent again, because the service would do the work once more.

        Raises:
            UnreachableError: the service cannot be reached, or it is unknown whether it made the change.
            ApiError: the service rejects the request, or fails; `is_outcome_unknown` is True if the change may have
                been made.
        """
        built = build_request_headers("", headers, is_append=appends)
        chosen = {name: value for name, value in (params or {}).items() if value is not None}
        options: dict[str, Any] = {"params": chosen, "headers": built}
        if content is not None:
            options["content"] = content
        elif json is not None:
            options["json"] = json
        if is_slow:
            options["timeout"] = self._slow_timeout
        changes_data = can_method_change_data(method) and not reads
        try:
            return self._send_with_token(method, path, changes_data=changes_data, **options)
        except ApiError as error:
            failure = find_error_of_uncertain_change(method, built, error) if error.is_outcome_unknown else error
            if failure is error:
                raise
            if failure is not None:
                raise failure from error
            return httpx.Response(204)

    def get_json(self, path: str, params: Mapping[str, Any] | None = None, *, is_slow: bool = False) -> Any:
        """Send a GET request and return the JSON reply; parameters and errors as :meth:`request`."""
        return parse_json_reply(self.request("GET", path, params=params, is_slow=is_slow))

    @contextmanager
    def open_signed_link(self, url: str) -> Iterator[httpx.Response]:
        """Context manager: open a signed link to a file and yield the reply, whose body the caller reads in parts.

        A signed link needs no token.

        Raises:
            ApiError: the service rejects the request or cannot be reached.
        """
        try:
            response = self.client.send(build_signed_link_request(self.client, url), stream=True)
            try:
                if not response.is_success:
                    response.read()
                if error := find_error(response):
                    raise error
                yield response
            finally:
                response.close()
        except httpx.RequestError as error:
            raise UnreachableError(f"{self.url} does not respond: {error}") from error

    def _send_with_token(self, method: str, path: str, *, changes_data: bool, **options: Any) -> httpx.Response:
        """Send a request with the access token; if the service rejects the token, send it again with a new token."""
        token = self.get_token()
        try:
            return self._send_with_retries(method, path, token, changes_data=changes_data, **options)
        except SignInError as error:
            # A signature needs a person who signs in again, not a program that has stored the key.
            if not self.can_renew_token or error.code == REAUTHENTICATION_REQUIRED:
                raise
            is_outcome_unknown = error.is_outcome_unknown
        try:
            # The token may have been revoked, or the service has new signing keys.
            token = self.get_token(rejected_token=token)
            return self._send_with_retries(method, path, token, changes_data=changes_data, **options)
        except ApiError as error:
            error.is_outcome_unknown |= is_outcome_unknown
            raise

    def _send_with_retries(
        self, method: str, path: str, token: str, *, changes_data: bool, **options: Any
    ) -> httpx.Response:
        """Send a request until it succeeds or must not be repeated.

        Raises:
            InvalidRequestError: the URL is too long for the HTTP library, or contains control characters.
            ApiError: error of the last attempt. Its `is_outcome_unknown` is True if the request can change something
                and one of the attempts may have done so.
        """
        attempt, is_outcome_unknown = 0, False
        options["headers"] = build_request_headers(token, options.get("headers"), is_append=False)
        while True:
            attempt += 1
            try:
                response = self.client.request(method, path, **options)
            except httpx.InvalidURL as invalid:
                detail = (
                    f"The request was not sent, because its URL is invalid: {invalid}. "
                    "Shorten names and parameters, and remove control characters."
                )
                raise InvalidRequestError(0, "", detail) from None
            except httpx.RequestError as cause:
                error: Any = UnreachableError(f"{self.url} does not respond: {str(cause) or type(cause).__name__}")
                error.__cause__ = cause
                is_uncertain = not has_failed_before_sending(cause)
                is_late = isinstance(cause, httpx.ReadTimeout) and "timeout" in options
                may_repeat = (
                    is_safe_to_repeat(method, options["headers"]) and not is_late
                    if is_uncertain
                    else not has_invalid_certificate(cause)
                )
            else:
                error = find_error(response)
                if error is None:
                    return response
                is_uncertain = is_outcome_uncertain(error)
                may_repeat = not (is_uncertain and changes_data) or is_safe_to_repeat(method, options["headers"])
            is_outcome_unknown |= is_uncertain and changes_data
            pause = find_retry_delay_seconds(error, attempt, self._max_attempts) if may_repeat else None
            if pause is None:
                error.is_outcome_unknown = is_outcome_unknown
                raise error
            sleep(pause)


def _call_token_function(get_token: Callable[[], str], rejected_token: str) -> str:
    """Return the token of a caller's function; if ``rejected_token`` is not empty, a renewable token is renewed.

    Raises:
        ValueError: the function returned a text with invalid characters.
    """
    text = get_token.renew(rejected_token) if rejected_token and isinstance(get_token, RenewableToken) else get_token()
    check_credential_characters(text)
    return text
