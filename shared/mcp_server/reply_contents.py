"""Large contents of MCP replies, which placeholders replace while the MCP SDK builds the reply.

The SDK copies, validates and serialises each result on the event loop, which a large result would block.

This module is separate from ``transport`` because it does not depend on the MCP SDK.
"""

from collections.abc import Mapping
from typing import Any

from shared.runtime import Runtime
from shared.text_formats.serialisation import serialise_json_in_parts


class ReplyContents:
    """JSON texts for one MCP reply, and the placeholders that the SDK gets instead of them.

    Args:
        runtime: randomness and threads.
    """

    def __init__(self, *, runtime: Runtime) -> None:
        self._runtime = runtime
        self._texts: dict[str, str] = {}

    def add_and_get_placeholder(self, json_text: str) -> str:
        """Add the JSON text of an object to the reply; return a short string that the SDK gets instead of the text."""
        placeholder = self._runtime.new_id()
        self._texts[placeholder] = json_text
        return placeholder

    async def insert_into_reply_body(self, reply_body: bytes) -> bytes:
        """Return the body of a reply with the JSON texts in the place of their placeholders.

        A string with a placeholder becomes a string with the JSON text, and an object of
        :func:`build_object_placeholder` becomes the JSON object itself.

        Args:
            reply_body: JSON without spaces.
        """
        size = sum(map(len, self._texts.values()))
        return await self._runtime.run_in_thread_if_large(size, _replace_placeholders, reply_body, self._texts)


def build_object_placeholder(placeholder: str) -> dict[str, Any]:
    """Build the object that the SDK gets instead of a JSON object; ``placeholder`` identifies the object's text."""
    return {placeholder: True}


def _replace_placeholders(reply_body: bytes, json_texts: Mapping[str, str]) -> bytes:
    for placeholder, text in json_texts.items():
        string = b'"%b"' % placeholder.encode()
        reply_body = reply_body.replace(b"{%b:true}" % string, text.encode())
        reply_body = reply_body.replace(string, b"".join(serialise_json_in_parts(text)))
    return reply_body
