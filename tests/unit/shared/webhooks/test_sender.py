"""Tests of the request bodies of deliveries."""

import json
from typing import Any

import pytest

from shared.webhooks.events import WebhookEventType
from shared.webhooks.models import MessageFormat
from shared.webhooks.sender import TITLES, build_chat_message_title, render_body

EVENT: dict[str, Any] = {
    "type": "alert.firing",
    "timestamp": "2026-03-01T12:00:00.000000Z",
    "data": {"name": "<Hot> [x](y)", "value": 7.5, "runbookUrl": None, "note": "n" * 600},
}


def test_every_event_type_has_a_title() -> None:
    """Each event type has a title; if the data of an event is incomplete, its type is the title."""
    assert set(TITLES) == set(WebhookEventType)
    assert build_chat_message_title(EVENT) == "Alert: <Hot> [x](y)"
    assert build_chat_message_title({**EVENT, "data": {}}) == "alert.firing"


def test_the_standard_body_is_the_event() -> None:
    """In the format ``standard``, the stored text of the event is sent unchanged."""
    text = json.dumps(EVENT)
    assert render_body(text, MessageFormat.STANDARD, "https://plant.example") == text.encode()


@pytest.mark.parametrize("base_url", ["https://plant.example", ""])
def test_cards_escape_markup_and_link_to_the_console(base_url: str) -> None:
    """A chat message has a title, values and a link to the console; markup is escaped, and long values are cut."""
    teams = json.loads(render_body(json.dumps(EVENT), MessageFormat.TEAMS, base_url))
    card = teams["attachments"][0]["content"]
    assert card["body"][0]["text"] == "Alert: <Hot> \\[x\\](y)"
    facts = {fact["title"]: fact["value"] for fact in card["body"][1]["facts"]}
    assert (facts["value"], len(facts["note"]), "runbookUrl" in facts) == ("7.5", 503, False)
    slack = json.loads(render_body(json.dumps(EVENT), MessageFormat.SLACK, base_url))
    assert slack["text"] == "Alert: &lt;Hot&gt; [x](y)"
    assert {block["text"]["type"] for block in slack["blocks"] if "text" in block} == {"plain_text"}
    links = [action["url"] for action in card.get("actions", ())]
    links += [each["url"] for block in slack["blocks"] for each in block.get("elements", ())]
    assert links == ([f"{base_url}/console#/alerts"] * 2 if base_url else [])


@pytest.mark.parametrize("message_format", [MessageFormat.TEAMS, MessageFormat.SLACK])
def test_an_unknown_event_type_has_a_chat_message(message_format: MessageFormat) -> None:
    """An event of a type that only a newer version knows is sent to chats; its link leads to the console."""
    text = json.dumps({**EVENT, "type": "import.completed"})
    message = render_body(text, message_format, "https://plant.example").decode()
    assert "import.completed" in message
    assert '"https://plant.example/console#/"' in message
