"""Typed and checked access to the properties of a configuration file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_REQUIRED: Any = object()


class SettingsError(ValueError):
    """The configuration is invalid; the message names the property and the violated rule."""


class Section:
    """Object in a configuration file, with methods that read and check its properties.

    :meth:`check_all_properties_read` rejects properties that the program has not read.

    Args:
        value: the parsed object, a mapping of names to values.
        place: path of the object in the file, such as ``routes[0]``; empty for the whole file.

    Raises:
        SettingsError: the value is not an object.
    """

    def __init__(self, value: Any, place: str = "") -> None:
        if not isinstance(value, Mapping):
            raise SettingsError(f"{place or 'The file'} must be an object with properties.")
        self._values: dict[str, Any] = dict(value)
        self._place = place
        self._read: list[str] = []

    def quote_property_path(self, property_name: str) -> str:
        """Return the path of a property in the file, for error messages."""
        return f"`{self._place}.{property_name}`" if self._place else f"`{property_name}`"

    def has_property(self, property_name: str) -> bool:
        """Return whether this section has a property with this name that is not null."""
        self._read.append(property_name)
        return self._values.get(property_name) is not None

    def get_text(self, property_name: str, default: str | None = None) -> str:
        """Return the non-empty text of a property.

        If the property is missing, return the default; if there is no default, raise an error.
        """
        value = self._get_property(property_name, _REQUIRED if default is None else default)
        # YAML also reads dates and other values without quotes.
        if not isinstance(value, (str, Mapping, list, set)):
            raise SettingsError(f"{self.quote_property_path(property_name)} must be a text; put its value in quotes.")
        if not isinstance(value, str) or not value:
            raise SettingsError(f"{self.quote_property_path(property_name)} must be a text that is not empty.")
        return value

    def get_value_as_text(self, property_name: str, default: str) -> str:
        """Return a property as text, also if YAML has read it as a number, such as `10`.

        If the property is missing, return the default.
        """
        return str(self._get_property(property_name, default))

    def find_text(self, property_name: str) -> str | None:
        """Return the non-empty text of a property; None if the property is missing."""
        return self.get_text(property_name) if self.has_property(property_name) else None

    def get_choice(self, property_name: str, choices: Sequence[str], default: str) -> str:
        """Return the text of a property, which must be one of the choices; if it is missing, return the default."""
        value = self._get_property(property_name, default)
        # YAML reads `5` as a number; it names the same choice as the text.
        if isinstance(value, bool) or str(value) not in choices:
            raise SettingsError(f"{self.quote_property_path(property_name)} must be one of {', '.join(choices)}.")
        return str(value)

    def get_integer(self, property_name: str, default: int, *, minimum: int, maximum: int) -> int:
        """Return the integer of a property, which must be within bounds; if it is missing, return the default."""
        value = self._get_property(property_name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise SettingsError(
                f"{self.quote_property_path(property_name)} must be an integer between {minimum:,} and {maximum:,}."
            )
        return value

    def get_path(self, property_name: str) -> Path:
        """Return the file path that a property contains."""
        return Path(self.get_text(property_name))

    def find_path(self, property_name: str) -> Path | None:
        """Return the file path that a property contains; None if the property is missing."""
        return self.get_path(property_name) if self.has_property(property_name) else None

    def get_section(self, property_name: str, default: Mapping[str, Any] | None = None) -> "Section":
        """Return the section for a property whose value is an object.

        If the property is missing, use the default as its value; if there is no default, raise an error.
        """
        value = self._get_property(property_name, _REQUIRED if default is None else default)
        return Section(value, self.quote_property_path(property_name).strip("`"))

    def get_section_list(self, property_name: str) -> "list[Section]":
        """Return the sections for a property whose value is a list of one or more objects."""
        value = self._get_property(property_name, _REQUIRED)
        if not isinstance(value, list) or not value:
            raise SettingsError(f"{self.quote_property_path(property_name)} must be a list with at least one element.")
        place = self.quote_property_path(property_name).strip("`")
        return [Section(each, f"{place}[{index}]") for index, each in enumerate(value)]

    def check_all_properties_read(self) -> None:
        """Check that the program has read every property of this section; an unread property is misspelt or unknown.

        Raises:
            SettingsError: a property is unknown; the message names it and the known ones.
        """
        for name in self._values:
            if name not in self._read:
                known = ", ".join(sorted(set(self._read)))
                raise SettingsError(
                    f"{self.quote_property_path(str(name))} is not a known setting; "
                    f"the known settings here are {known}."
                )

    def _get_property(self, property_name: str, default: Any) -> Any:
        self._read.append(property_name)
        value = self._values.get(property_name)
        if value is None:
            if default is _REQUIRED:
                raise SettingsError(f"{self.quote_property_path(property_name)} is missing.")
            return default
        return value
