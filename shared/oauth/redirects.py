"""Redirects of the browser to an OAuth client, with an authorization code or an error."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from shared.oauth.errors import OAuthError, OAuthErrorCode, to_error_description
from shared.oauth.parameters import Parameters
from shared.observability.metrics import count


@dataclass(frozen=True, slots=True)
class Redirect:
    """Redirect of the browser to the OAuth client, with an authorization code or an error."""

    address: str


def build_access_denied_error(description: str) -> OAuthError:
    """Build the OAuth error for an authorization request that the member or the service denies."""
    return OAuthError(OAuthErrorCode.ACCESS_DENIED, description)


def build_error_redirect(redirect_uri: str, parameters: Parameters, service_url: str, error: OAuthError) -> Redirect:
    """Build the redirect that reports an error to the client; count the error in the metrics unless it is a denial."""
    if error.error is not OAuthErrorCode.ACCESS_DENIED:
        count("workspace.oauth.refusals", error=str(error.error))
    members = {"error": str(error.error), "error_description": to_error_description(error.detail)}
    return Redirect(append_parameters_to_redirect_uri(redirect_uri, parameters, service_url, members))


def append_parameters_to_redirect_uri(
    redirect_uri: str, parameters: Parameters, service_url: str, extra_parameters: dict[str, str]
) -> str:
    """Return a redirect URI with further query parameters.

    Args:
        redirect_uri: the URI.
        parameters: parameters of the authorization request; its ``state`` is added.
        service_url: base URL of the service, which is added as ``iss`` (RFC 9207).
        extra_parameters: other parameters to add.
    """
    state = parameters.get("state")
    query = {**extra_parameters, **({} if state is None else {"state": state}), "iss": service_url}
    return f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{urlencode(query, quote_via=quote)}"
