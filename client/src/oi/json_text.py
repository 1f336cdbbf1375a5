"""Strict parsing and encoding of JSON; rejects all JSON that the service would reject, and states the position."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from math import isinf
from typing import Any, NoReturn

_LONGEST_SHOWN = 64
_RULES = {
    "Expecting value": "a value is expected",
    "Expecting property name": "a name in double quotes is expected",
    "Expecting ':'": "a colon is expected",
    "Expecting ','": "a comma is expected",
    "Extra data": "text follows the value",
    "Unterminated string": "the string that begins here is not closed",
    "Invalid control character": "a control character in a string must be escaped",
    "Invalid \\": "an escape in a string is not valid",
    "Illegal trailing comma": "no value follows the comma",
}


class JsonTextError(ValueError):
    """A text is not JSON, or a value cannot be expressed in JSON.

    The message states the rule and, if known, the position in the text.
    """


def parse_json(text: str) -> Any:
    """Parse a JSON value.

    Raises:
        JsonTextError: the text is not JSON, is nested too deeply, has a number outside the range of a double or with
            too many digits, or an object has two properties of the same name.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonTextError(_describe_decode_error(error)) from None
    except JsonTextError:
        raise
    except ValueError:
        raise JsonTextError(f"an integer has more than {sys.get_int_max_str_digits()} digits") from None
    except RecursionError:
        raise JsonTextError("the value is nested too deeply") from None


def encode_json(value: Any) -> bytes:
    """Encode a value as JSON without spaces, in UTF-8.

    Raises:
        JsonTextError: a number is NaN or infinite, a text has an unpaired surrogate, or the value is nested too deeply.
        TypeError: a value cannot be converted to JSON.
    """
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        raise JsonTextError("a text has an unpaired surrogate, which is not a character") from None
    except ValueError:
        raise JsonTextError("a number is NaN or infinite, which JSON cannot express") from None
    except RecursionError:
        raise JsonTextError("the value is nested too deeply") from None


def split_json_pointer(pointer: str) -> list[str]:
    """Split a JSON pointer (RFC 6901) into property names and array indices without escapes."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def get_value_at_pointer_part(container: Any, pointer_part: str, default: Any = None) -> Any:
    """Return the value in an object or array to which one part of a JSON pointer refers.

    Return ``default`` if the container has no such value, or is neither an object nor an array.
    """
    if isinstance(container, Mapping):
        return container.get(pointer_part, default)
    is_index = pointer_part.isascii() and pointer_part.isdigit() and (pointer_part == "0" or pointer_part[0] != "0")
    if (
        isinstance(container, list)
        and is_index
        and len(pointer_part) <= len(str(len(container)))
        and int(pointer_part) < len(container)
    ):
        return container[int(pointer_part)]
    return default


def build_object_rejecting_duplicates(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object from its properties; for use as ``object_pairs_hook`` of :func:`json.loads`.

    Raises:
        JsonTextError: two properties have the same name.
    """
    built = dict(members)
    if len(built) != len(members):
        counts = Counter(name for name, _ in members)
        twice = next(name for name in built if counts[name] > 1)
        raise JsonTextError(f"the property {json.dumps(twice[:_LONGEST_SHOWN])} occurs twice in one object")
    return built


def _describe_decode_error(error: json.JSONDecodeError) -> str:
    if not error.doc.strip():
        return "the text is empty"
    rule = next((rule for start, rule in _RULES.items() if error.msg.startswith(start)), error.msg)
    place = f"column {error.colno}" if "\n" not in error.doc.strip() else f"line {error.lineno}, column {error.colno}"
    return f"{rule} at {place}"


def _reject_non_json_number(constant: str) -> NoReturn:
    raise JsonTextError(f"{constant} is not a JSON number; send null or a finite number")


def _parse_finite_float(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise JsonTextError(f"the number {text[:_LONGEST_SHOWN]} is outside the range of a double")
    return number


# Built once: the functions of the module `json` build them for each call with these options.
_DECODER = json.JSONDecoder(
    parse_constant=_reject_non_json_number,
    parse_float=_parse_finite_float,
    object_pairs_hook=build_object_rejecting_duplicates,
)
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
