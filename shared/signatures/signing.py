"""Signing of a decision: parsing of the signature, and checks in their documented order.

The signed decision is appended within a session, which also records the use of the sign-in.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from shared.auth.principals import Principal
from shared.auth.reauthentication import require_recent_sign_in_time
from shared.catalog.signature_models import REJECTION, SignaturePolicy
from shared.errors import (
    FieldError,
    Kind,
    ValidationErrors,
    WorkspaceError,
    build_invalid_field_error,
    build_invalid_fields_error,
)
from shared.idempotency.replies import MAYBE_DONE
from shared.provenance.canonical import encode_canonical_value
from shared.provenance.models import MAX_STATEMENT
from shared.provenance.ports import ChainKey
from shared.provenance.signatures import (
    REQUEST_MEMBER,
    DecisionSignature,
    SigningSession,
    build_signature_required_error,
)
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.signatures.attempt_counter import AttemptCounter
from shared.signatures.sign_ins import SIGNATURE_TOKEN_USED, SignInBusyError, SignInRegistry, build_sign_in_name

_MEMBERS: Final = ("meaning", "statement")


@dataclass(frozen=True, slots=True)
class SignatureInput:
    """Input of a person who signs a decision.

    Attributes:
        meaning: meaning of the signature, such as ``approval``.
        statement: remark in the person's own words; None without a remark.
    """

    meaning: str
    statement: str | None


def list_allowed_meanings(meanings: Sequence[str], *, is_rejection: bool) -> list[str]:
    """Return the meanings, such as ``approval``, that the signature of an approval or a rejection may have.

    Args:
        meanings: meanings that the policy lists.
        is_rejection: True for the signature of a rejection, False for the signature of an approval.
    """
    return [meaning for meaning in meanings if (meaning == REJECTION) is is_rejection]


def parse_signature(signature_json: Any, meanings: Sequence[str], *, is_rejection: bool) -> SignatureInput:
    """Validate the body property ``signature``, and return its meaning and statement.

    Args:
        signature_json: JSON value of the property; None if it is missing.
        meanings: meanings that a signature may have by the workspace's policy.
        is_rejection: whether the decision is a rejection.

    Raises:
        WorkspaceError: INVALID, naming the invalid properties. The code is ``SIGNATURE_REQUIRED`` if the signature is
            missing, ``SIGNATURE_MEANING_INVALID`` (with the property ``allowed``) if the meaning is missing or not
            allowed, and ``INVALID_REQUEST`` for other errors.
    """
    if signature_json is None:
        raise build_signature_required_error()
    if not isinstance(signature_json, dict):
        raise build_invalid_field_error(REQUEST_MEMBER, "must be an object")
    faults = ValidationErrors()
    allowed = list_allowed_meanings(meanings, is_rejection=is_rejection)
    if signature_json.get("meaning") not in allowed:
        faults.add(_build_meaning_error(allowed))
    if unknown := [name for name in signature_json if name not in _MEMBERS]:
        faults.add(
            build_invalid_fields_error(
                [FieldError(f"{REQUEST_MEMBER}.{name}", "is not a property of a signature") for name in unknown]
            )
        )
    statement = signature_json.get("statement")
    with faults.collect_raised_error():
        _check_signature_statement(statement)
    faults.raise_all()
    return SignatureInput(signature_json["meaning"], statement)


def _build_meaning_error(allowed_meanings: list[str]) -> WorkspaceError:
    message = f"must be {' or '.join(f'`{meaning}`' for meaning in allowed_meanings)}"
    error = build_invalid_field_error(f"{REQUEST_MEMBER}.meaning", message, code="SIGNATURE_MEANING_INVALID")
    error.members["allowed"] = allowed_meanings
    return error


def _check_signature_statement(statement: Any) -> None:
    if statement is None:
        return
    if not isinstance(statement, str):
        raise build_invalid_field_error(f"{REQUEST_MEMBER}.statement", "must be text")
    if len(statement) > MAX_STATEMENT:
        raise build_invalid_field_error(f"{REQUEST_MEMBER}.statement", f"must have at most {MAX_STATEMENT} characters")
    encode_canonical_value(statement, f"{REQUEST_MEMBER}.statement")


_REFUSALS: Final = frozenset({Kind.UNAUTHENTICATED, Kind.FORBIDDEN, Kind.CONFLICT})
"""Kinds of errors of this module that count as refused attempts to sign."""


@dataclass(frozen=True, slots=True)
class SigningRequest:
    """Request of a person to sign a decision.

    Attributes:
        principal: the caller.
        printed_name: current name of the caller.
        policy: the workspace's rules for signatures.
        sent: body property ``signature``, not yet validated; None if it is missing.
        is_rejection: whether the decision is a rejection.
    """

    principal: Principal
    printed_name: str
    policy: SignaturePolicy
    sent: Any
    is_rejection: bool

    @property
    def is_single_use(self) -> bool:
        """True if each sign-in may sign only one decision."""
        return self.policy.max_age_seconds == 0


class Signing:
    """Checks whether the caller may sign a decision, and records refused attempts and the use of sign-ins.

    Args:
        attempts: counts refused attempts.
        sign_ins: records which sign-ins have signed.
        runtime: clock.
    """

    def __init__(
        self, attempts: AttemptCounter, sign_ins: SignInRegistry, *, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._attempts = attempts
        self._sign_ins = sign_ins
        self._runtime = runtime

    def build_signer(self, request: SigningRequest) -> "RequestSigner":
        """Build the signer with which the caller of a request signs a decision."""
        return RequestSigner(self, request)

    @asynccontextmanager
    async def open_session(
        self, request: SigningRequest, append_id: str, chain: ChainKey
    ) -> AsyncIterator[SigningSession]:
        """Context manager: open the session of a signed decision.

        See :class:`shared.provenance.signatures.DecisionSigner`.
        """
        principal = request.principal
        await self._attempts.check_not_locked_out(principal.member_id)
        wanted = parse_signature(request.sent, request.policy.meanings, is_rejection=request.is_rejection)
        async with self.record_refusals_in_block(principal):
            auth_time = await self._reserve_sign_in_and_get_its_time(request, append_id, chain)
        name = build_sign_in_name(principal.member_id, principal.sign_in.sign_in_id, auth_time)
        session = SigningSession(_build_signature(request, wanted, auth_time))
        if request.is_single_use:
            session.confirm = partial(self._sign_ins.confirm_and_extend_reservation, name, append_id)
        try:
            yield session
        except WorkspaceError as error:
            if request.is_single_use and error.kind not in MAYBE_DONE:
                # If the store fails, the use is abandoned after its lease.
                with suppress(WorkspaceError):
                    await self._sign_ins.release_reservation_unless_appended(name, append_id, chain)
            if error.code == SIGNATURE_TOKEN_USED:
                # Raised by `session.confirm`; other errors here do not concern the signature.
                await self._record_refusal(principal, error)
            raise
        if session.is_decided:
            # If the store fails, the append id of the use still shows that the decision was appended.
            with suppress(WorkspaceError):
                await self._sign_ins.mark_sign_in_used(name, append_id, chain)
        elif request.is_single_use:
            with suppress(WorkspaceError):
                await self._sign_ins.release_reservation(name, append_id)

    @asynccontextmanager
    async def record_refusals_in_block(
        self, principal: Principal, kinds: Collection[Kind] = _REFUSALS
    ) -> AsyncIterator[None]:
        """Context manager: count an error of the block as the caller's refused attempt to sign, and raise it again.

        ``SignInBusyError`` does not count.

        Args:
            principal: the caller.
            kinds: kinds of errors that count.

        Raises:
            WorkspaceError: the errors of the block; UNAVAILABLE if the store of attempts does not respond.
        """
        try:
            yield
        except WorkspaceError as error:
            if error.kind in kinds and not isinstance(error, SignInBusyError):
                await self._record_refusal(principal, error)
            raise

    async def _record_refusal(self, principal: Principal, error: WorkspaceError) -> None:
        # Another person can cause refusals of these tokens, so they must not lock the member out.
        if principal.personal and not principal.is_delegated:
            is_sign_in_too_old = error.kind is Kind.UNAUTHENTICATED
            await self._attempts.record_refusal(
                principal.member_id, principal.credential_id, is_sign_in_too_old=is_sign_in_too_old
            )

    async def _reserve_sign_in_and_get_its_time(
        self, request: SigningRequest, append_id: str, chain: ChainKey
    ) -> datetime:
        principal, sign_in = request.principal, request.principal.sign_in
        auth_time = require_recent_sign_in_time(sign_in, request.policy.max_age_seconds, self._runtime.now())
        principal.require_not_delegated()
        if not principal.personal:
            detail = (
                "The token descends from an API key that another person created; sign with a key that you created, or "
                "sign in with Entra ID."
            )
            raise WorkspaceError(Kind.FORBIDDEN, "SIGNATURE_NOT_PERSONAL", detail)
        if request.is_single_use:
            name = build_sign_in_name(principal.member_id, sign_in.sign_in_id, auth_time)
            await self._sign_ins.reserve_sign_in(name, append_id, chain)
        return auth_time


class RequestSigner:
    """Implementation of DecisionSigner: signs the decision of one request."""

    def __init__(self, signing: Signing, request: SigningRequest) -> None:
        self._signing = signing
        self._request = request

    @property
    def sent_signature(self) -> Any:
        """Body property ``signature`` of the request, not yet validated; None if it is missing."""
        return self._request.sent

    def sign(self, append_id: str, chain: ChainKey) -> AbstractAsyncContextManager[SigningSession]:
        """Return a context manager for the session in which the signed decision is appended.

        On entry, it checks that the caller may sign.
        """
        return self._signing.open_session(self._request, append_id, chain)


def _build_signature(
    request: SigningRequest, signature_input: SignatureInput, auth_time: datetime
) -> DecisionSignature:
    return DecisionSignature(
        user_id=request.principal.member_id,
        printed_name=request.printed_name,
        meaning=signature_input.meaning,
        statement=signature_input.statement,
        auth_time=auth_time,
        auth_methods=request.principal.sign_in.methods,
    )
