"""Tests of the placeholders for the contents of MCP replies."""

import json

from shared.mcp_server.reply_contents import ReplyContents, build_object_placeholder
from shared.runtime import SYSTEM_RUNTIME
from shared.text_formats.serialisation import serialise_json


async def test_contents_replace_their_placeholders() -> None:
    """Each content replaces its placeholder: as a text in a string, and as an object in an object."""
    contents = ReplyContents(runtime=SYSTEM_RUNTIME)
    values = [{"a": 'ü "quoted" \\ \n'}, {}, {"rows": ["x" * 100_000, None, True]}]
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    placeholders = [contents.add_and_get_placeholder(text) for text in texts]
    objects = [build_object_placeholder(one) for one in placeholders]
    body = await contents.insert_into_reply_body(
        serialise_json({"texts": placeholders, "objects": objects, "other": [1, "x"]})
    )
    assert json.loads(body) == {"texts": texts, "objects": values, "other": [1, "x"]}


async def test_a_body_without_placeholders_is_unchanged() -> None:
    """A body without placeholders, such as an error of the protocol, is returned unchanged."""
    contents = ReplyContents(runtime=SYSTEM_RUNTIME)
    contents.add_and_get_placeholder("{}")
    assert await contents.insert_into_reply_body(b'{"error":{}}') == b'{"error":{}}'
