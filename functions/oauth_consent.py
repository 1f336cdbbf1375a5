"""HTTP operations of the OAuth 2.1 authorization server for people: consent to clients, and list of these consents."""

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from pydantic import BaseModel, Field, StrictBool, StrictStr, model_validator

from functions.oauth_replies import NO_STORE
from functions.pages import STRICT_POLICY
from functions.public_address import build_misdirected_reply, get_public_url, has_known_host
from functions.reply_docs import oauth as replies
from functions.serialized_items import build_serialized_list_reply
from shared.auth.principals import CredentialRestriction
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Access, Call, Group
from shared.http.unknown_names import UnknownNames
from shared.oauth.authorization import ConsentQuestion
from shared.oauth.grants import Grant
from shared.oauth.parameters import AUTHORIZATION_PARAMETERS, RESOURCE, Parameters, collect_parameters
from shared.oauth.redirects import Redirect
from shared.oauth.sign_in_demands import REQUESTED_AT
from shared.observability.logs import request_id
from shared.text_formats.serialisation import serialise_json
from shared.timestamps import format_rfc3339
from shared.wiring import services

GROUP = Group("oauth-consent")
CONSENT_PAGE: Final = "console/#/consent"
_ERROR_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sign-in request refused</title></head>
<body><h1>The sign-in request was refused</h1><p>{detail}</p>
<p>Nothing was sent to the application. Tell its developer or the workspace's administrators.</p></body></html>
"""
_REJECTS_BOUND: Final = frozenset({CredentialRestriction.BOUND})
_UNTRUSTED: Final = ("client_id", "redirect_uri")


class RequestBody(BaseModel):
    """Parameters of an authorization request, as they are in the address of the consent page."""

    response_type: StrictStr | None = None
    client_id: StrictStr | None = None
    redirect_uri: StrictStr | None = None
    scope: StrictStr | None = None
    state: StrictStr | None = None
    code_challenge: StrictStr | None = None
    code_challenge_method: StrictStr | None = None
    response_mode: StrictStr | None = None
    prompt: StrictStr | None = None
    max_age: StrictStr | None = None
    resource: StrictStr | list[StrictStr] | None = Field(None, description="One or several resources.")
    requested_at: StrictStr | None = Field(
        None, description="Time of the request, which the service states in the address of the consent page."
    )

    def to_parameters(self) -> Parameters:
        """Convert the request body of the consent page to the parameters of an OAuth authorization request."""
        return collect_parameters(list(self._iterate_parameters()))

    def _iterate_parameters(self) -> Iterator[tuple[str, str]]:
        for name in (*AUTHORIZATION_PARAMETERS, REQUESTED_AT):
            value = getattr(self, name)
            if value is not None:
                yield name, value
        resources = [self.resource] if isinstance(self.resource, str) else self.resource or []
        yield from ((RESOURCE, value) for value in resources)


class DecisionBody(RequestBody):
    """Decision of a person about an authorization request."""

    approve: StrictBool
    scopes: list[StrictStr] | None = Field(
        None, max_length=200, description="Delegated access rights; required with `approve: true`."
    )

    @model_validator(mode="after")
    def check_scopes(self) -> "DecisionBody":
        """Reject an approval without the property `scopes`."""
        if self.approve and self.scopes is None:
            raise ValueError("`scopes` is required with `approve: true`")
        return self


@GROUP.endpoint("GET", "oauth2/authorize", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.START_DOCS)
async def start_authorization(call: Call) -> Reply:
    """Redirect the browser of a person from an OAuth client to the consent page (RFC 6749 section 4.1.1)."""
    if not has_known_host(call.request):
        return build_misdirected_reply(request_id.get())
    base = get_public_url(call.request)
    try:
        parameters = _read_authorization_parameters(call)
        redirect = await services().oauth.authorization.find_error_redirect_before_sign_in(parameters, base)
    except WorkspaceError as error:
        if error.kind is not Kind.INVALID:
            raise
        return _build_error_page(error)
    if redirect is None:
        pairs = [(name, value) for name in AUTHORIZATION_PARAMETERS if (value := parameters.get(name)) is not None]
        pairs += [(RESOURCE, value) for value in parameters.resources]
        requested_at = services().oauth.authorization.record_and_format_request_time(parameters)
        pairs += [] if requested_at is None else [(REQUESTED_AT, requested_at)]
        redirect = Redirect(f"{base}/{CONSENT_PAGE}?{urlencode(pairs, quote_via=quote)}")
    return Reply(302, b"", {"Location": redirect.address, **NO_STORE})


@GROUP.endpoint(
    "POST",
    "oauth2/authorize",
    requires_user=True,
    rejects=frozenset(CredentialRestriction),
    body=DecisionBody,
    unknown=UnknownNames.IGNORE,
    docs=replies.DECISION_DOCS,
)
async def decide_authorization(call: Call[Any, DecisionBody]) -> Reply:
    """Record the decision of a person about a client's request, and return the redirect to the client."""
    if not has_known_host(call.request):
        return build_misdirected_reply(request_id.get())
    body = call.body
    redirect = await services().oauth.authorization.record_consent_decision(
        call.principal,
        body.to_parameters(),
        get_public_url(call.request),
        (body.scopes or []) if body.approve else None,
    )
    return build_json_reply({"redirectTo": redirect.address}, headers=NO_STORE)


@GROUP.endpoint(
    "POST",
    "oauth2/authorize/preview",
    requires_user=True,
    rejects=frozenset(CredentialRestriction),
    body=RequestBody,
    unknown=UnknownNames.IGNORE,
    docs=replies.PREVIEW_DOCS,
)
async def preview_authorization(call: Call[Any, RequestBody]) -> Reply:
    """Return the content of the consent page: the client, its redirect host, and the requested access rights."""
    if not has_known_host(call.request):
        return build_misdirected_reply(request_id.get())
    base = get_public_url(call.request)
    question = await services().oauth.authorization.build_consent_question(
        call.principal, call.body.to_parameters(), base
    )
    return build_json_reply(_consent_question_to_json(question), headers=NO_STORE)


@GROUP.endpoint("GET", "oauth2/grants", access=Access.TOKEN, rejects=_REJECTS_BOUND, docs=replies.GRANTS_LISTED_DOCS)
async def list_grants(call: Call) -> Reply:
    """List the clients to which the caller has consented.

    A grant is the consent of a member to a client. Callers with the right to manage keys get the grants of all members.
    """
    grants = await services().oauth.grants.list_visible_grants(call.principal)
    # In a worker thread, because there can be thousands of grants.
    return await services().runtime.run_in_thread(_build_grant_list_reply, grants)


@GROUP.endpoint(
    "DELETE",
    "oauth2/grants/{grantId}",
    access=Access.TOKEN,
    rejects=_REJECTS_BOUND,
    docs=replies.GRANT_ENDED_DOCS,
)
async def end_grant(call: Call) -> Reply:
    """End a grant; its access and refresh tokens are revoked.

    A grant is the consent of a member to a client.
    """
    await services().oauth.grants.end_grant(call.principal, call.path["grantId"])
    return Reply(204)


def _read_authorization_parameters(call: Call) -> Parameters:
    """Read the parameters of an authorization request from its query string.

    Raises:
        WorkspaceError: INVALID if the query string is malformed, or repeats a parameter that determines the redirect.
    """
    try:
        parameters = collect_parameters(call.request.query_pairs)
    except ValueError as error:
        raise build_invalid_field_error("query", f"the query string is invalid: {error}") from None
    for name in _UNTRUSTED:
        if name in parameters.repeated:
            raise build_invalid_field_error(name, "is repeated; send it once")
    return parameters


def _build_error_page(error: WorkspaceError) -> Reply:
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": STRICT_POLICY.format(origins=""),
        **NO_STORE,
    }
    return Reply(400, _ERROR_PAGE.format(detail=html.escape(error.detail)).encode(), headers, error.code)


def _consent_question_to_json(question: ConsentQuestion | Redirect) -> Mapping[str, Any]:
    if isinstance(question, Redirect):
        return {"redirectTo": question.address}
    client = question.request.client
    return {
        "client": {"id": client.client_id, "name": client.name, "isDeclared": client.is_declared_in_workspace},
        "redirectHost": question.redirect_host,
        "accessRights": list(question.rights),
        "missingRights": list(question.missing),
    }


def _build_grant_list_reply(grants: Sequence[Grant]) -> Reply:
    return build_serialized_list_reply("grants", [serialise_json(_grant_to_json(grant)) for grant in grants], {})


def _grant_to_json(grant: Grant) -> Mapping[str, Any]:
    used_at = grant.created_at if grant.refresh is None else grant.refresh.used_at
    return {
        "id": grant.grant_id,
        "clientId": grant.client_id,
        "clientName": grant.client_name,
        "principal": grant.member_id,
        "accessRights": sorted(grant.rights),
        "createdAt": format_rfc3339(grant.created_at),
        "lastUsedAt": format_rfc3339(used_at),
        "expiresAt": format_rfc3339(grant.expires_at),
    }
