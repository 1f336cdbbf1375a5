"""Request bodies of the audit log: events, amendments, rejections and signatures.

Unknown properties, and properties that the service sets itself, are ignored.
"""

from itertools import chain
from typing import Annotated, Any, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from shared.provenance.canonical import list_canonical_form_faults
from shared.provenance.selection import MAX_SCOPE_CHARACTERS

SCOPE: Final = {"type": "string", "minLength": 1, "maxLength": MAX_SCOPE_CHARACTERS}
ScopeKey = Annotated[str | None, WithJsonSchema({"anyOf": [SCOPE, {"type": "null"}]})]
"""A scope; null means no scope."""
RequiredScopeKey = Annotated[str | None, WithJsonSchema(SCOPE)]
"""A required scope. If it is missing, the error code is ``SCOPE_KEY_REQUIRED``."""

type Text = Annotated[str, StringConstraints(strict=True, min_length=1)]


class Body(BaseModel):
    """Base class of request bodies of the audit log.

    Unknown properties are ignored; a body is rejected if one of its properties, known or unknown, has no canonical JSON
    form.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    @model_validator(mode="wrap")
    @classmethod
    def _check_canonical_forms(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        faults = _map_canonical_form_errors_by_property(value) if type(value) is dict else {}
        if not faults:
            return validate(value)
        errors: list[InitErrorDetails] = []
        try:
            validate(value)
        except ValidationError as failure:
            for detail in failure.errors(include_url=False, include_context=False):
                errors.append(_build_pydantic_error(detail["type"], detail["msg"], detail["loc"], detail["input"]))
                faults.pop(detail["loc"][0], None)
        # One error has all invalid fields, because the service lists them in one reply.
        raise ValidationError.from_exception_data(cls.__name__, [*errors, *chain.from_iterable(faults.values())])


def _map_canonical_form_errors_by_property(body: dict[str, Any]) -> dict[int | str, list[InitErrorDetails]]:
    """Return the errors of the values in a request body that have no canonical JSON form, by the property's name."""
    return {
        name: [_build_pydantic_error("canonical_form", rule, (name, *location), value) for location, rule in faults]
        for name, value in body.items()
        if (faults := list_canonical_form_faults(value))
    }


def _build_pydantic_error(kind: str, message: str, location: tuple[int | str, ...], value: Any) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError(kind, message), loc=location, input=value)


class EventBody(Body):
    """Audit event; an optional property with the value null counts as absent."""

    action_type: Text = Field(alias="ActionType")
    entity_type: Text = Field(alias="EntityType")
    entity_id: Text = Field(alias="EntityID")
    node_id: str | None = Field(None, alias="NodeID")
    before_state: dict[str, Any] | None = Field(None, alias="BeforeState")
    after_state: dict[str, Any] | None = Field(None, alias="AfterState")
    name: str | None = Field(None, alias="Name")
    description: str | None = Field(None, alias="Description")
    scope_key: ScopeKey = Field(None, alias="ScopeKey")

    def to_event(self) -> dict[str, Any]:
        """Convert this request body to the properties of an audit event; the internal ``ScopeKey`` is omitted."""
        return self.model_dump(by_alias=True, exclude={"scope_key"}, exclude_none=True)


def _require_scope_in_schema(schema: dict[str, Any]) -> None:
    """Add ``ScopeKey`` to the required properties of a request body's JSON schema."""
    schema["required"] = ["ScopeKey", *schema["required"]]


class AmendmentBody(Body):
    """Request body that creates an amendment, a correction of an entity."""

    model_config = ConfigDict(json_schema_extra=_require_scope_in_schema)

    scope_key: RequiredScopeKey = Field(None, alias="ScopeKey", description="Required.")
    entity_type: Text = Field(alias="EntityType")
    entity_id: Text = Field(alias="EntityID")
    original_record: dict[str, Any] = Field(alias="OriginalRecord")
    amended_record: dict[str, Any] = Field(alias="AmendedRecord")
    changed_fields: list[Text] = Field(alias="ChangedFields", min_length=1)
    reason_category: Annotated[Any, WithJsonSchema({"type": "string", "minLength": 1})] = Field(
        alias="ReasonCategory", description="One of the workspace's reason categories."
    )
    reason_text: str = Field(alias="ReasonText")


MAX_STATEMENT: Final = 1_000
"""Maximum number of characters of a signature's statement."""


class SignatureBody(BaseModel):
    """Signature of a decision. Its meaning is `rejection` for a rejection, another allowed text for an approval."""

    model_config = ConfigDict(extra="forbid", title="SignatureBody")

    meaning: str = Field(
        description="One of `policies.signatures.meanings`: `rejection` for a rejection, another one for an approval."
    )
    statement: str | None = Field(None, max_length=MAX_STATEMENT, description="Text about the decision.")


SentSignature = Annotated[
    Any,
    WithJsonSchema({"anyOf": [SignatureBody.model_json_schema(), {"type": "null"}]}),
    Field(description="Signature of the decision; required if the policy `signatures` requires it."),
]
"""Type of the body property ``signature``.

The request pipeline accepts any value: other reasons to reject a decision are reported before an invalid signature.
"""


class RejectionBody(Body):
    """Request body that rejects an amendment; the query string may contain the scope instead."""

    scope_key: ScopeKey = Field(None, alias="ScopeKey")
    rejection_reason: str | None = Field(None, alias="RejectionReason")
    signature: SentSignature = None
