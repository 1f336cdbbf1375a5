"""Tests of the ids that the client adds to messages, and of the batches in which it sends lines."""

from typing import Any

import pytest
from oi.batches import MAX_BYTES, MAX_MESSAGES, add_message_id, encode_ndjson_line, split_into_batches
from oi.json_text import JsonTextError


def test_a_message_without_an_id_gets_a_new_id() -> None:
    """A message without an id gets a new id, in a copy of the message."""
    message: dict[str, Any] = {"value": 1, "messageId": None}
    first, second = add_message_id(message), add_message_id(message)
    assert first["messageId"] != second["messageId"]
    assert message == {"value": 1, "messageId": None}


@pytest.mark.parametrize("message_id", ["m-1", "", 0, 7])
def test_an_existing_message_id_is_not_changed(message_id: Any) -> None:
    """A message with an id is sent unchanged, even if the service will reject this id."""
    assert add_message_id({"messageId": message_id, "value": 1}) == {"messageId": message_id, "value": 1}


def test_the_id_is_added_at_the_pointer_of_the_connection() -> None:
    """The message id is added at the JSON pointer from which the connection reads it."""
    added = add_message_id({"h": {"t": 1}, "value": 1}, "/h/a~1b")
    assert added == {"h": {"t": 1, "a/b": added["h"]["a/b"]}, "value": 1}
    assert add_message_id({"h": {"id": "m"}}, "/h/id") == {"h": {"id": "m"}}
    assert list(add_message_id({}, "/h/id")["h"]) == ["id"]
    assert add_message_id({"h": 5}, "/h/id") == {"h": 5}


def test_a_batch_of_telegraf_gets_no_id() -> None:
    """The object in which Telegraf writes several metrics gets no id, because the service rejects it."""
    batch = {"metrics": [{"fields": {"a": 1}, "name": "pump", "tags": {}, "timestamp": 1}]}
    assert add_message_id(batch) == batch


@pytest.mark.parametrize(
    "message",
    [
        {"readings": [{"v": 1}, {"v": 2}]},
        {"metrics": [{"v": 1}]},
        {"metrics": []},
        {"metrics": [1]},
        {"metrics": [{"fields": {}, "name": "pump", "tags": {}, "timestamp": 1}], "site": "a"},
    ],
)
def test_an_object_that_contains_an_array_of_objects_gets_an_id(message: dict[str, object]) -> None:
    """An object with an array of objects is a message, so it gets an id and is stored once if it is sent again."""
    added = add_message_id(message)
    assert added == {**message, "messageId": added["messageId"]}


def test_batches_are_within_the_limits_of_a_request() -> None:
    """A batch has at most the maximum number of messages and bytes; a line over the maximum is sent alone."""
    assert [len(batch) for batch in split_into_batches([b"{}\n"] * (MAX_MESSAGES + 1))] == [MAX_MESSAGES, 1]
    large = b"x" * (MAX_BYTES // 2)
    assert [len(batch) for batch in split_into_batches([large, large, b"{}\n", b"x" * (MAX_BYTES + 1)])] == [2, 1, 1]
    assert list(split_into_batches([])) == []


def test_a_message_is_encoded_as_one_line() -> None:
    """A message is encoded as one line; a value that JSON cannot represent raises an error."""
    assert encode_ndjson_line({"a": "x\ny", "b": "ä"}) == '{"a":"x\\ny","b":"ä"}\n'.encode()
    with pytest.raises(JsonTextError, match="NaN or infinite"):
        encode_ndjson_line({"a": float("nan")})
