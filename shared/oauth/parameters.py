"""Parameters of requests to the OAuth endpoints, and the client's credentials (RFC 6749 section 2.3)."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from shared.oauth.errors import OAuthError, OAuthErrorCode, build_invalid_client_error, build_invalid_request_error

FORM: Final = "application/x-www-form-urlencoded"
RESOURCE: Final = "resource"
AUTHORIZATION_PARAMETERS: Final = (
    *("response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method"),
    *("response_mode", "prompt", "max_age"),
)
"""Parameters of an authorization request that may appear once; ``resource`` is not listed, as it may be repeated."""

_MAX_PARAMETERS: Final = 100
_KEPT_IF_EMPTY: Final = frozenset({"scope"})
"""Names of parameters whose empty value does not count as missing."""

_BASIC: Final = "basic"


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of an HTTP request to an OAuth endpoint, by name.

    Parameters without a value count as missing (RFC 6749 section 3.1), except ``scope``.

    Attributes:
        values: values by name of all parameters except ``resource``.
        resources: values of ``resource``, which may be repeated (RFC 8707 section 2).
        repeated: names of the parameters, other than ``resource``, that the request repeats.
    """

    values: Mapping[str, str]
    resources: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    def get(self, name: str) -> str | None:
        """Return the value of a parameter; None if it is missing."""
        return self.values.get(name)

    def check_no_parameter_is_repeated(self) -> None:
        """Check that no parameter except ``resource`` is repeated.

        Raises:
            OAuthError: ``invalid_request``.
        """
        if self.repeated:
            raise build_invalid_request_error(f"The parameter {self.repeated[0][:64]} is repeated; send it once.")

    def require(self, name: str) -> str:
        """Return the value of a required parameter.

        Raises:
            OAuthError: ``invalid_request`` if it is missing.
        """
        value = self.values.get(name)
        if value is None:
            raise build_invalid_request_error(f"The parameter {name} is required.")
        return value


@dataclass(frozen=True, slots=True)
class ClientIdentification:
    """Id and secret with which a client identifies itself; the secret is empty for a public client."""

    client_id: str
    secret: str = ""


def parse_form_parameters(media_type: str, body: bytes) -> Parameters:
    """Parse the parameters in the form body of a request.

    Raises:
        OAuthError: ``invalid_request`` if the body is not a form, or repeats a parameter.
    """
    if media_type != FORM:
        raise build_invalid_request_error(f"The Content-Type must be {FORM}.")
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS, separator="&"
        )
    except ValueError:
        raise build_invalid_request_error("The body is not a valid form in UTF-8.") from None
    parameters = collect_parameters(pairs)
    parameters.check_no_parameter_is_repeated()
    return parameters


def collect_parameters(pairs: Sequence[tuple[str, str]]) -> Parameters:
    """Collect the name-value pairs of a query string or a form; of a repeated parameter, the first value is used."""
    values: dict[str, str] = {}
    repeated: list[str] = []
    for name, value in pairs:
        if name == RESOURCE or not (value or name in _KEPT_IF_EMPTY):
            continue
        if name in values:
            repeated.append(name)
        values.setdefault(name, value)
    resources = tuple(value for name, value in pairs if name == RESOURCE and value)
    return Parameters(values, resources, tuple(repeated))


def identify_client(authorization_header: str, parameters: Parameters) -> ClientIdentification:
    """Read the id and the secret of the client from the Authorization header (Basic) or from the form.

    Raises:
        OAuthError: ``invalid_client`` if they are missing or malformed; ``invalid_request`` if they are sent twice.
    """
    client_id, secret = parameters.get("client_id"), parameters.get("client_secret")
    if not authorization_header:
        if client_id is None:
            raise build_invalid_client_error(
                "The parameter client_id, or the header Authorization: Basic, is required."
            )
        return ClientIdentification(client_id, secret or "")
    basic = _parse_basic_credentials(authorization_header)
    if secret is not None or client_id not in (None, basic.client_id):
        raise build_invalid_request_error(
            "Send the client's credentials once: in the header Authorization or in the form."
        )
    return basic


def check_resources_are_this_service(parameters: Parameters, service_url: str) -> None:
    """Check that every ``resource`` for which a client requests a token is this service.

    Args:
        parameters: parameters of the client's request.
        service_url: base URL of the service, without a trailing slash.

    Raises:
        OAuthError: ``invalid_target``.
    """
    accepted = {service_url, f"{service_url}/", f"{service_url}/oi-api/mcp"}
    if not accepted.issuperset(parameters.resources):
        description = f"The parameter resource must be {service_url} or {service_url}/oi-api/mcp."
        raise OAuthError(OAuthErrorCode.INVALID_TARGET, description)


def _parse_basic_credentials(authorization_header: str) -> ClientIdentification:
    scheme, _, encoded = authorization_header.partition(" ")
    try:
        user, colon, password = base64.b64decode(encoded.strip(" \t"), validate=True).decode("utf-8").partition(":")
        identified = ClientIdentification(unquote_plus(user, errors="strict"), unquote_plus(password, errors="strict"))
    except (ValueError, binascii.Error):
        identified, colon = ClientIdentification(""), ""
    if scheme.lower() != _BASIC or not (colon and identified.client_id):
        raise build_invalid_client_error("The header Authorization must be Basic with the client's id and secret.")
    return identified
