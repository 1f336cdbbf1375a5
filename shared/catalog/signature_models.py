"""Models of the policy for electronic signatures, and of the signatures that decisions about warm queries contain."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer

from shared.catalog.fields import Instant, Model, Name, ShortName

APPROVAL: Final = "approval"
REJECTION: Final = "rejection"
"""The only meaning of a rejection; an approval has any other meaning."""

DEFAULT_MEANINGS: Final = (APPROVAL, REJECTION, "review")
MAX_MEANINGS: Final = 20
MAX_AGE_SECONDS: Final = 3600
"""Largest value of the policy `maxAgeSeconds`."""

_ALWAYS_ALLOWED: Final = (APPROVAL, REJECTION)


def _count_declared_meanings(meanings: tuple[str, ...]) -> int:
    """Count the signature meanings that a policy declares, without the default `approval` and `rejection` at the end.

    :func:`_add_default_meanings` adds these two meanings. They do not count, because a client may send back a list that
    the service returned.
    """
    count = len(meanings)
    while count and len(meanings) - count < len(_ALWAYS_ALLOWED) and meanings[count - 1] in _ALWAYS_ALLOWED:
        count -= 1
    return count


def _add_default_meanings(meanings: tuple[str, ...]) -> tuple[str, ...]:
    if _count_declared_meanings(meanings) > MAX_MEANINGS:
        raise ValueError(f"must have at most {MAX_MEANINGS} items")
    return (*meanings, *(each for each in _ALWAYS_ALLOWED if each not in meanings))


class SignatureRequirement(StrEnum):
    """Rule of the signature policy for one kind of decision: signatures are off or required."""

    OFF = "off"
    REQUIRED = "required"


class SignaturePolicy(Model):
    """Rules for decisions that count as electronic signatures."""

    amendments: SignatureRequirement = Field(
        SignatureRequirement.OFF, description="Whether approvals and rejections of amendments need a signature."
    )
    queries: SignatureRequirement = Field(
        SignatureRequirement.OFF, description="Whether approvals and rejections of warm queries need a signature."
    )
    max_age_seconds: int = Field(
        300,
        alias="maxAgeSeconds",
        ge=0,
        le=MAX_AGE_SECONDS,
        description="Maximum age of the sign-in of a person who signs; 0 if each signature needs its own sign-in.",
    )
    meanings: Annotated[tuple[ShortName, ...], AfterValidator(_add_default_meanings)] = Field(
        DEFAULT_MEANINGS,
        description="Meanings of signatures; `approval` and `rejection` are added if they are missing.",
    )

    @property
    def is_required(self) -> bool:
        """True if any kind of decision needs a signature."""
        return SignatureRequirement.REQUIRED in (self.amendments, self.queries)

    @property
    def kinds_that_require_signature(self) -> Iterator[str]:
        """Names of the policy's properties (kinds of decision) that require a signature."""
        for name, requirement in (("amendments", self.amendments), ("queries", self.queries)):
            if requirement is SignatureRequirement.REQUIRED:
                yield name


class QuerySignature(Model):
    """Electronic signature of a decision about a warm query."""

    user_id: Name = Field(alias="userId")
    printed_name: str = Field(alias="printedName", description="Name of the member at the time of the signature.")
    meaning: str
    statement: str | None = None
    signed_at: Instant = Field(alias="signedAt")
    auth_time: Instant = Field(alias="authTime", description="Time of the sign-in of the person.")
    auth_methods: tuple[str, ...] = Field(alias="authMethods")
    record_hash: str = Field(
        alias="recordHash", description="SHA-256 of the RFC 8785 form of the query's `kql` and `parameters`."
    )


class SignedDecision(Model):
    """Base class of decisions with an optional signature.

    JSON contains ``signature`` only if the decision is signed.
    """

    @model_serializer(mode="wrap")
    def _omit_missing_signature(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        if fields.get("signature") is None:
            fields.pop("signature", None)
        return fields
