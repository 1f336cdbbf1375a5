"""Deprecation of operations and JSON property names: dates, OpenAPI schemas, and headers of replies."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from functools import cache
from typing import Any, Final, override

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from shared.http.messages import Reply
from shared.http.unknown_names import map_accepted_names_to_documented_names

PAGE: Final = "/oi-api/explorer"
"""Path of the page that documents the API and its deprecated operations and names."""


@dataclass(frozen=True, slots=True)
class Deprecation:
    """Dates of the deprecation of an operation or JSON property name.

    Attributes:
        deprecated_on: first day on which new clients should not use the operation or name.
        removed_on: first day on which the operation or name can be removed; at least 12 months after
            ``deprecated_on``.
    """

    deprecated_on: date
    removed_on: date

    def __post_init__(self) -> None:
        """Check that at least 12 months are between the dates.

        Raises:
            ValueError: less than 12 months are between the dates.
        """
        on = self.deprecated_on
        if (self.removed_on.year - 1, self.removed_on.month, self.removed_on.day) < (on.year, on.month, on.day):
            raise ValueError("at least 12 months must be between deprecation and removal")


@dataclass(frozen=True, slots=True)
class DeprecatedAlias:
    """Annotation of a model's field that is also accepted under a deprecated name.

    Attributes:
        name: the deprecated name, which is also a validation alias of the field.
        deprecation: dates of the name's deprecation.
    """

    name: str
    deprecation: Deprecation


FORMER_NAMES: Final = Deprecation(date(2026, 12, 1), date(2028, 1, 1))
"""Deprecation of the property names that were replaced in the first version of the API."""


class ModelWithAliases(BaseModel):
    """Model whose JSON schema also contains the deprecated names of its fields."""

    @classmethod
    @override
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> JsonSchemaValue:
        schema = handler(core_schema)
        resolved = handler.resolve_ref_schema(schema)
        for name, alias in _list_documented_names_and_deprecated_aliases(cls):
            described = f"Deprecated name of `{name}`; accepted until {alias.deprecation.removed_on}."
            resolved["properties"][alias.name] = {
                **resolved["properties"][name],
                "description": described,
                "deprecated": True,
            }
            # A request with both names is rejected.
            resolved.setdefault("allOf", []).append(
                {"not": {"required": [name, alias.name], "properties": {name: {}, alias.name: {}}}}
            )
        return schema


def iterate_used_deprecations(model: Any, request_value: Any) -> Iterator[Deprecation]:
    """Yield the :class:`Deprecation` of each deprecated property name that a request body contains.

    Args:
        model: model of the request body.
        request_value: JSON value of the request body.
    """
    if not (isinstance(model, type) and issubclass(model, BaseModel) and isinstance(request_value, dict)):
        return
    for _, alias in _list_documented_names_and_deprecated_aliases(model):
        if alias.name in request_value:
            yield alias.deprecation
    for name, info in model.model_fields.items():
        yield from iterate_used_deprecations(info.annotation, request_value.get(info.alias or name))


def has_deprecated_names(model: Any) -> bool:
    """Return whether a request body of a model can contain a deprecated property name."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return False
    inner = (info.annotation for info in model.model_fields.values())
    return bool(_list_documented_names_and_deprecated_aliases(model)) or any(map(has_deprecated_names, inner))


def add_deprecation_headers(reply: Reply, deprecations: Iterable[Deprecation]) -> None:
    """Add headers to the reply to a request that uses deprecated operations or names.

    The headers are ``Deprecation`` (RFC 9745), ``Sunset`` (RFC 8594) and ``Link``, with the earliest dates of all
    deprecations that the request uses.
    """
    found = list(deprecations)
    if not found:
        return
    deprecated_at = _to_midnight_in_utc(min(each.deprecated_on for each in found))
    removed_at = _to_midnight_in_utc(min(each.removed_on for each in found))
    reply.headers["Deprecation"] = f"@{int(deprecated_at.timestamp())}"
    reply.headers["Sunset"] = format_datetime(removed_at, usegmt=True)
    link = f'<{PAGE}>; rel="deprecation"; type="text/html"'
    reply.headers["Link"] = f"{reply.headers['Link']}, {link}" if "Link" in reply.headers else link


@cache
def _list_documented_names_and_deprecated_aliases(model: type[BaseModel]) -> tuple[tuple[str, DeprecatedAlias], ...]:
    """Return each annotation of a deprecated name in a model, together with the documented name of its field."""
    accepted = map_accepted_names_to_documented_names(model)
    aliases = (each for info in model.model_fields.values() for each in info.metadata)
    return tuple((accepted[alias.name], alias) for alias in aliases if isinstance(alias, DeprecatedAlias))


def _to_midnight_in_utc(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
