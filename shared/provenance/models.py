"""Request bodies of the audit log: events, amendments, rejections and signatures.

Unknown properties, and properties that the service sets itself, are ignored.
"""

from functools import cache
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

from shared.provenance.canonical import encode_canonical_value
from shared.provenance.selection import MAX_SCOPE_CHARACTERS

SCOPE: Final = {"type": "string", "minLength": 1, "maxLength": MAX_SCOPE_CHARACTERS}
ScopeKey = Annotated[str | None, WithJsonSchema({"anyOf": [SCOPE, {"type": "null"}]})]
"""A scope; null means no scope."""
RequiredScopeKey = Annotated[str | None, WithJsonSchema(SCOPE)]
"""A required scope. If it is missing, the error code is ``SCOPE_KEY_REQUIRED``."""

type Text = Annotated[str, StringConstraints(strict=True, min_length=1)]


class Body(BaseModel):
    """Base class of request bodies of the audit log.

    Unknown properties are ignored; a body is rejected if one of them has no canonical JSON form.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="ignore", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_canonical_forms(cls, value: Any) -> Any:
        if type(value) is dict and not value.keys() <= (known := _get_property_names(cls)):
            for name in value.keys() - known:
                encode_canonical_value(value[name], name)
        return value


@cache
def _get_property_names(model: type[Body]) -> frozenset[str]:
    return frozenset(model.model_fields).union(field.alias or "" for field in model.model_fields.values())


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
