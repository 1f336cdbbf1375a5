"""Validation of OAuth authorization requests, the consent of the member, and the redirect to the client."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shared.auth.audit import AccessAudit
from shared.auth.credential_lineage import CredentialLineage
from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.auth.token_ids import build_token_id
from shared.errors import FieldError, build_invalid_fields_error
from shared.oauth.clients import Client, ClientDirectory
from shared.oauth.errors import OAuthError, OAuthErrorCode, build_invalid_request_error
from shared.oauth.grants import CODE_LIFETIME, CodeProof, Grant, GrantStore
from shared.oauth.parameters import Parameters, check_resources_are_this_service
from shared.oauth.redirects import (
    Redirect,
    append_parameters_to_redirect_uri,
    build_access_denied_error,
    build_error_redirect,
)
from shared.oauth.scopes import DEFAULT_RIGHTS, parse_scope
from shared.oauth.secrets import CHALLENGE, compute_secret_digest, generate_authorization_code
from shared.oauth.sign_in_demands import RequestTimes, parse_sign_in_demand
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.validation.redirect_uris import describe_redirect_host


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """Validated OAuth authorization request.

    Attributes:
        client: OAuth client that requests access.
        redirect_uri: address of the client to which the browser is redirected with the result.
        rights: requested access rights.
        challenge: PKCE code challenge (RFC 7636).
    """

    client: Client
    redirect_uri: str
    rights: frozenset[AccessRight]
    challenge: str


@dataclass(frozen=True, slots=True)
class ConsentQuestion:
    """Content of the consent page, on which a team member allows or denies access to an OAuth client.

    Attributes:
        request: the client's authorization request.
        rights: requested access rights that the member has and can delegate.
        missing: requested access rights that the member lacks.
    """

    request: AuthorizationRequest
    rights: tuple[AccessRight, ...]
    missing: tuple[AccessRight, ...]

    @property
    def redirect_host(self) -> str:
        """Host and port of the redirect URI, or its scheme if it has no host (URI of an app); shown to the member."""
        return describe_redirect_host(self.request.redirect_uri)


class AuthorizationService:
    """Checks authorization requests and records the consent of members.

    Args:
        clients: finds OAuth clients by their ids.
        store: storage of the grants.
        lineage: finds the API key for which the member's token was issued.
        audit: records the audit events.
        runtime: clock and randomness.
    """

    def __init__(
        self,
        clients: ClientDirectory,
        store: GrantStore,
        lineage: CredentialLineage,
        audit: AccessAudit,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._clients = clients
        self._store = store
        self._lineage = lineage
        self._audit = audit
        self._runtime = runtime
        self._times = RequestTimes(runtime=runtime)

    async def find_error_redirect_before_sign_in(self, parameters: Parameters, service_url: str) -> Redirect | None:
        """Check an authorization request before the member signs in; return a redirect with an error, else None.

        If a metadata document describes the client, nothing is checked yet, because the document is fetched only for a
        signed-in caller.

        Raises:
            WorkspaceError: INVALID ``OAUTH_CLIENT_UNKNOWN`` or ``REDIRECT_URI_MISMATCH``. The reply must then be no
                redirect, because the redirect URI is not trusted.
        """
        client = await self._clients.find_declared_client(parameters.get("client_id") or "")
        if client is None:
            return None
        redirect_uri = client.resolve_redirect_uri(parameters.get("redirect_uri"))
        try:
            _parse_rights_and_challenge(parameters, service_url)
        except OAuthError as error:
            return build_error_redirect(redirect_uri, parameters, service_url, error)
        return None

    def record_and_format_request_time(self, parameters: Parameters) -> str | None:
        """Record when an authorization request arrived, and return this time as RFC 3339 text.

        Return None, and record nothing, if the request requires no new sign-in or is malformed.
        """
        return self._times.record_and_format_arrival_time(parameters)

    async def build_consent_question(
        self, caller: Principal, parameters: Parameters, service_url: str
    ) -> ConsentQuestion | Redirect:
        """Check the authorization request of a signed-in member, and return the content of the consent page.

        Args:
            caller: the signed-in team member.
            parameters: parameters of the authorization request.
            service_url: base URL of the service, which is the OAuth issuer.

        Returns:
            The content of the consent page, or a redirect with an error.

        Raises:
            WorkspaceError: INVALID ``OAUTH_CLIENT_UNKNOWN`` or ``REDIRECT_URI_MISMATCH``; FORBIDDEN
                ``DELEGATED_TOKEN`` if the caller is itself an OAuth client, or ``CREDENTIAL_BOUND`` if the caller's
                credential is restricted to certain connections.
        """
        caller.require_not_delegated()
        caller.require_no_connection_binding()
        client = await self._clients.get_client(parameters.get("client_id") or "", caller.member_id)
        redirect_uri = client.resolve_redirect_uri(parameters.get("redirect_uri"))
        try:
            rights, challenge = _parse_rights_and_challenge(parameters, service_url)
            held = tuple(sorted(rights & caller.rights))
            if not held:
                raise build_access_denied_error("The member has none of the requested access rights.")
        except OAuthError as error:
            return build_error_redirect(redirect_uri, parameters, service_url, error)
        request = AuthorizationRequest(client, redirect_uri, rights, challenge)
        return ConsentQuestion(request, held, tuple(sorted(rights - caller.rights)))

    async def record_consent_decision(
        self, caller: Principal, parameters: Parameters, service_url: str, chosen_rights: Sequence[str] | None
    ) -> Redirect:
        """Record that a member allows or denies access to an OAuth client; return the redirect to the client.

        Args:
            caller: the signed-in team member.
            parameters: parameters of the authorization request.
            service_url: base URL of the service, which is the OAuth issuer.
            chosen_rights: access rights that the member delegates to the client; None if the member denies access.

        Raises:
            WorkspaceError: the same errors as :meth:`build_consent_question`; INVALID naming ``scopes`` if a right was
                not requested; UNAUTHENTICATED if the member's credential was revoked in the meantime or its
                record is missing, or ``REAUTHENTICATION_REQUIRED`` if the client requires a newer sign-in.
        """
        question = await self.build_consent_question(caller, parameters, service_url)
        if isinstance(question, Redirect):
            return question
        redirect_uri = question.request.redirect_uri
        rights = frozenset() if chosen_rights is None else _select_chosen_rights(question, chosen_rights)
        demand = parse_sign_in_demand(parameters)
        demand.require_recent_sign_in(
            caller.sign_in, self._times.find_arrival_time(parameters) if demand.is_new else None, self._runtime.now()
        )
        if chosen_rights is None:
            return build_error_redirect(
                redirect_uri, parameters, service_url, build_access_denied_error("The member denied access.")
            )
        if not rights:
            error = build_access_denied_error("The member delegated none of the requested access rights.")
            return build_error_redirect(redirect_uri, parameters, service_url, error)
        code = await self._create_grant_and_return_code(caller, question.request, rights)
        return Redirect(append_parameters_to_redirect_uri(redirect_uri, parameters, service_url, {"code": code}))

    async def _create_grant_and_return_code(
        self, caller: Principal, request: AuthorizationRequest, rights: frozenset[AccessRight]
    ) -> str:
        """Store a new grant with its audit event, and return its authorization code."""
        at = self._runtime.now()
        grant_id = build_token_id(self._runtime, at)
        code = generate_authorization_code(self._runtime, grant_id)
        ancestors = await self._lineage.find_ancestor_credentials(caller)
        key = ancestors.api_key
        grant = Grant(
            grant_id=grant_id,
            member_id=caller.member_id,
            client_id=request.client.client_id,
            client_name=request.client.name,
            rights=rights,
            created_at=at,
            code=CodeProof(
                compute_secret_digest(code.secret), request.challenge, request.redirect_uri, at + CODE_LIFETIME
            ),
            sign_in=caller.sign_in,
            token_id=caller.credential_id,
            ancestor_ids=ancestors.token_ids,
            api_key_id="" if key is None else key.key_id,
            credential_ends_at=None if key is None else key.expires_at,
        )
        await self._store.add_grant(grant)
        # After the grant is stored: a later revocation of the credential finds the grant and ends it.
        await self._lineage.require_credential_not_revoked(caller)
        details = {
            "clientId": grant.client_id,
            "clientName": grant.client_name,
            "redirectHost": describe_redirect_host(request.redirect_uri),
            "accessRights": sorted(rights),
            "madeWith": caller.describe_credential(),
        }
        await self._audit.record_event_if_audited(
            caller.member_id, "Grant.Created", "Grant", grant_id, append_id=f"grant-created-{grant_id}", after=details
        )
        return str(code)


class _RequestedAccess(NamedTuple):
    """Access rights and PKCE code challenge of an authorization request."""

    rights: frozenset[AccessRight]
    code_challenge: str


def _parse_rights_and_challenge(parameters: Parameters, service_url: str) -> _RequestedAccess:
    """Return the requested access rights and the code challenge of an authorization request.

    Raises:
        OAuthError: a parameter is missing or invalid; the error is meant for the client.
    """
    parameters.check_no_parameter_is_repeated()
    if parameters.require("response_type") != "code":
        raise OAuthError(OAuthErrorCode.UNSUPPORTED_RESPONSE_TYPE, "The parameter response_type must be code.")
    if parameters.get("response_mode") not in (None, "query"):
        raise build_invalid_request_error("The parameter response_mode must be query.")
    challenge = parameters.require("code_challenge")
    if parameters.get("code_challenge_method") != "S256":
        raise build_invalid_request_error("The parameter code_challenge_method must be S256.")
    if not CHALLENGE.fullmatch(challenge):
        raise build_invalid_request_error("The parameter code_challenge must have 43 characters of base64url.")
    check_resources_are_this_service(parameters, service_url)
    parse_sign_in_demand(parameters)
    scope = parameters.get("scope")
    return _RequestedAccess(DEFAULT_RIGHTS if scope is None else parse_scope(scope), challenge)


def _select_chosen_rights(question: ConsentQuestion, chosen_rights: Sequence[str]) -> frozenset[AccessRight]:
    """Return the access rights that the member chose, without rights that the member does not have."""
    requested = frozenset(map(str, question.request.rights))
    errors = [
        FieldError(f"scopes[{index}]", f"the client did not request the access right {name[:64]!r}")
        for index, name in enumerate(chosen_rights)
        if name not in requested
    ]
    if errors:
        raise build_invalid_fields_error(errors)
    return frozenset(right for right in question.rights if right in chosen_rights)
