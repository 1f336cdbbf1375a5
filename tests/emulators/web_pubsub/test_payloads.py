"""Tests of the frames in which clients receive messages."""

import json

import pytest

from emulators.web_pubsub.payloads import DataType, Payload, build_websocket_frame


def read_frame(frame: bytes) -> tuple[int, bytes]:
    """Return opcode and data of a short frame without a mask."""
    assert len(frame) == 2 + frame[1]
    return frame[0] & 0x0F, frame[2:]


@pytest.mark.parametrize(("data_type", "opcode"), [(DataType.TEXT, 1), (DataType.JSON, 1), (DataType.BINARY, 2)])
def test_a_plain_client_gets_only_the_data(data_type: DataType, opcode: int) -> None:
    """A client without a subprotocol gets only the data, in a binary frame if the data is binary."""
    assert read_frame(Payload(b'{"a":1}', data_type).plain_frame) == (opcode, b'{"a":1}')


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (Payload(b"hi", DataType.TEXT), {"from": "server", "dataType": "text", "data": "hi"}),
        (
            Payload(b'{"a":1}', DataType.JSON, "g"),
            {"from": "group", "group": "g", "dataType": "json", "data": {"a": 1}},
        ),
        (
            Payload(b"\xff", DataType.BINARY, "g", "ann"),
            {"from": "group", "group": "g", "fromUserId": "ann", "dataType": "binary", "data": "/w=="},
        ),
    ],
)
def test_a_client_with_the_subprotocol_gets_an_object_with_the_origin(
    payload: Payload, expected: dict[str, object]
) -> None:
    """A client with the subprotocol gets an object that contains the origin of the message."""
    opcode, data = read_frame(payload.json_frame)
    assert (opcode, json.loads(data)) == (1, {"type": "message", **expected})


def test_the_length_field_of_a_frame_grows_with_its_data() -> None:
    """The length of long data has two or eight bytes, as RFC 6455 section 5.2 specifies."""
    assert build_websocket_frame(b"x" * 126)[1:4] == b"\x7e\x00\x7e"
    assert build_websocket_frame(b"x" * 65_536)[1:10] == b"\x7f" + (65_536).to_bytes(8)
