"""Rules that map the address of a message, such as an MQTT topic, to a data connection and a device."""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from oi.gateway.sections import Section, SettingsError

TIMESTAMP_FORMATS = ("rfc3339", "epochSeconds", "epochMilliseconds")
NO_ROUTE = "No route matches the topic, or the matching routes give no valid connection or device id."
"""Why a message without a target is rejected."""

_LOOKUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NAMED_LEVEL = re.compile(r"\{([a-zA-Z][a-zA-Z0-9_]*)\}")
_LONGEST_DEVICE = 256
_MAX_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Fields:
    """JSON pointers to the metadata (time, id, device) in a message.

    Attributes:
        timestamp: JSON pointer to the time; None for the top-level property ``timestamp``.
        timestamp_format: format of the time, one of ``TIMESTAMP_FORMATS``.
        message_id: JSON pointer to the message id; None for the top-level property ``messageId``.
        device_id: JSON pointer to the device id; None for the top-level property ``deviceId``.
    """

    timestamp: str | None = None
    timestamp_format: str = "rfc3339"
    message_id: str | None = None
    device_id: str | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """Rule that maps the messages whose address matches a filter to a data connection.

    Attributes:
        topic: filter for MQTT topics, as configured; a level may be ``+`` or ``{name}``, and the last level ``#``.
        connection: short name (lookup) of the connection; ``{name}`` is replaced by the topic's level of that name.
        device: device id; None if each message contains its device id.
        fields: places of the metadata in the messages.
    """

    topic: str
    connection: str
    device: str | None
    fields: Fields

    @property
    def mqtt_filter(self) -> str:
        """Topic filter for the MQTT broker, in which ``+`` replaces each ``{name}``."""
        return "/".join("+" if _NAMED_LEVEL.fullmatch(level) else level for level in self.topic.split("/"))


@dataclass(frozen=True, slots=True)
class MessageTarget:
    """Connection and device to which a received message belongs.

    Attributes:
        connection: short name (lookup) of the connection.
        device: device id; None if the message contains its device id.
        fields: places of the metadata in the messages.
    """

    connection: str
    device: str | None
    fields: Fields


class Routes:
    """All rules of a gateway; the first rule whose filter matches the address of a message is used.

    Raises:
        ValueError: two filters overlap and neither covers the other, so that a broker can deliver a message twice.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = [(route, _compile_topic_pattern(route)) for route in routes]
        self._targets: dict[str, MessageTarget | None] = {}
        self.filters = _drop_covered_filters([route.mqtt_filter for route in routes])

    @property
    def fixed_connections(self) -> AbstractSet[str]:
        """Connections whose names are fixed in the rules, without a ``{name}`` placeholder."""
        return {route.connection for route, _ in self._routes if not _NAMED_LEVEL.search(route.connection)}

    def find_target(self, address: str) -> MessageTarget | None:
        """Return the connection and device to which a message with this address belongs.

        Return None if no rule matches, or if the first rule that matches gives an invalid connection or device id.
        """
        if address in self._targets:
            return self._targets[address]
        # Addresses come from outside: the memory for them is limited.
        if len(self._targets) >= _MAX_REMEMBERED:
            self._targets.clear()
        found = self._targets[address] = self._find_target_of_first_match(address)
        return found

    def _find_target_of_first_match(self, address: str) -> MessageTarget | None:
        for route, pattern in self._routes:
            if match := pattern.fullmatch(address):
                return _build_target(route, match.groupdict())
        return None


def parse_route(section: Section) -> Route:
    """Parse a route (a rule for messages of a topic) from its section in the configuration file.

    Raises:
        SettingsError: a setting is invalid; the message names the first one.
    """
    topic = section.get_text("topic")
    _check_topic(topic, section.quote_property_path("topic"))
    fields = Fields(
        _find_json_pointer(section, "timestampPointer"),
        section.get_choice("timestampFormat", TIMESTAMP_FORMATS, "rfc3339"),
        _find_json_pointer(section, "messageIdPointer"),
        _find_json_pointer(section, "deviceIdPointer"),
    )
    route = Route(topic, section.get_text("connection"), section.find_text("device"), fields)
    if route.device is not None and fields.device_id is not None:
        raise SettingsError(
            f"{section.quote_property_path('device')} and `deviceIdPointer` cannot both be set; remove one of them."
        )
    section.check_all_properties_read()
    names = set(_NAMED_LEVEL.findall(topic))
    for name, template in (("connection", route.connection), ("device", route.device or "")):
        for used in _NAMED_LEVEL.findall(template):
            if used not in names:
                raise SettingsError(
                    f"{section.quote_property_path(name)} uses the placeholder {{{used}}}, but the topic has no level "
                    f"{{{used}}}; add it to the topic."
                )
    if not _NAMED_LEVEL.search(route.connection) and not _LOOKUP.fullmatch(route.connection):
        raise SettingsError(
            f"{section.quote_property_path('connection')} must be the lookup (short name) of a connection, "
            "such as pump-rig."
        )
    return route


def _check_topic(topic: str, setting_path: str) -> None:
    """Raise a SettingsError if a topic filter such as ``plant/{line}/#`` has an invalid wildcard or name in braces."""
    levels = topic.split("/")
    for index, level in enumerate(levels):
        is_wildcard = level in {"+", "#"} or _NAMED_LEVEL.fullmatch(level)
        if not is_wildcard and any(each in level for each in "+#{}\0"):
            raise SettingsError(
                f"{setting_path}: `+`, `#` and a name in braces must each be a whole level of the topic."
            )
        if level == "#" and index != len(levels) - 1:
            raise SettingsError(f"{setting_path}: `#` must be the last level of the topic.")
    if topic.startswith("$share/"):
        raise SettingsError(
            f"{setting_path}: remove the prefix $share; for a shared subscription set `source.sharedGroup`."
        )
    names = _NAMED_LEVEL.findall(topic)
    if len(names) != len(set(names)):
        raise SettingsError(f"{setting_path}: each name in braces, such as {{line}}, may occur only once.")


def _find_json_pointer(section: Section, property_name: str) -> str | None:
    """Return the JSON pointer that a property contains; None if the property is missing."""
    pointer = section.find_text(property_name)
    if pointer is not None and not pointer.startswith("/"):
        raise SettingsError(
            f"{section.quote_property_path(property_name)} must be a JSON pointer, such as /header/time."
        )
    return pointer


def _compile_topic_pattern(route: Route) -> re.Pattern[str]:
    parts = []
    for index, level in enumerate(route.topic.split("/")):
        separator = "/" if index else ""
        if level == "#":
            # `a/#` matches `a` itself too; at the first level it does not match topics of the broker such as `$SYS`.
            parts.append(rf"(?:{separator}.*+)?+" if index else r"(?!\$).*+")
        elif level == "+":
            parts.append(separator + (r"[^/]*+" if index else r"(?!\$)[^/]*+"))
        elif name := _NAMED_LEVEL.fullmatch(level):
            start = separator if index else r"(?!\$)"
            parts.append(rf"{start}(?P<{name[1]}>[^/]++)")
        else:
            parts.append(separator + re.escape(level))
    return re.compile("".join(parts), re.DOTALL)


def _build_target(route: Route, topic_levels: dict[str, str]) -> MessageTarget | None:
    """Build the target of a message from a rule, in which each placeholder ``{name}`` is replaced by a topic level.

    Return None if the result is not a valid name of a connection, or is too long for a device id.
    """
    connection = _fill_template(route.connection, topic_levels)
    device = None if route.device is None else _fill_template(route.device, topic_levels)
    if not _LOOKUP.fullmatch(connection) or (device is not None and len(device) > _LONGEST_DEVICE):
        return None
    return MessageTarget(connection, device, route.fields)


def _fill_template(template: str, topic_levels: dict[str, str]) -> str:
    """Replace each placeholder ``{name}`` by the level of the topic with this name."""
    return _NAMED_LEVEL.sub(lambda match: topic_levels[match[1]], template)


def _drop_covered_filters(filters: Sequence[str]) -> list[str]:
    """Return the topic filters to which the gateway must subscribe: those that no other filter covers.

    Raises:
        ValueError: two filters overlap, and neither covers the other.
    """
    unique = list(dict.fromkeys(filters))
    for index, one in enumerate(unique):
        for other in unique[:index]:
            if (
                _can_filters_match_same_topic(one, other)
                and not _is_filter_covering(one, other)
                and not _is_filter_covering(other, one)
            ):
                raise ValueError(
                    f"The topics {other} and {one} overlap, so a broker may deliver messages twice; "
                    "use one topic that covers both."
                )
    return [one for one in unique if not any(other != one and _is_filter_covering(other, one) for other in unique)]


def _is_filter_covering(wide_filter: str, narrow_filter: str) -> bool:
    """Return whether a topic filter covers another one: it matches all topics that ``narrow_filter`` matches."""
    if _is_excluded_by_wildcard(narrow_filter, wide_filter):
        return False
    wide_levels, narrow_levels = wide_filter.split("/"), narrow_filter.split("/")
    for index, level in enumerate(wide_levels):
        if level == "#":
            return True
        if index >= len(narrow_levels) or narrow_levels[index] == "#":
            return False
        if level not in {"+", narrow_levels[index]}:
            return False
    return len(wide_levels) == len(narrow_levels)


def _can_filters_match_same_topic(first_filter: str, second_filter: str) -> bool:
    """Return whether two MQTT topic filters overlap: whether a topic can match both."""
    if _is_excluded_by_wildcard(first_filter, second_filter) or _is_excluded_by_wildcard(second_filter, first_filter):
        return False
    first, second = first_filter.split("/"), second_filter.split("/")
    for left, right in zip(first, second, strict=False):
        if "#" in {left, right}:
            return True
        if left != right and "+" not in {left, right}:
            return False
    if len(first) == len(second):
        return True
    longer = first if len(first) > len(second) else second
    shorter = min(len(first), len(second))
    return longer[shorter:] == ["#"]


def _is_excluded_by_wildcard(topic_filter: str, wildcard_filter: str) -> bool:
    """Return whether the first topic filter begins with ``$``, such as ``$SYS/#``, and the second one with a wildcard.

    No topic matches both: a wildcard at the first level matches no topic that begins with ``$`` (MQTT 5.0, 4.7.2).
    """
    return topic_filter.startswith("$") and wildcard_filter.startswith(("+", "#"))
