"""Tests of the rules for HTTP requests of the client."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from unittest.mock import Mock

import pytest
from oi import NotFoundError, Workspace
from oi.requests import quote_path_segment

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def test_a_name_in_a_path_is_percent_encoded() -> None:
    """A name or id is one segment of a path, whatever characters it contains."""
    assert [quote_path_segment(name) for name in ("a/b?c", "...", ".a", "ü")] == ["a%2Fb%3Fc", "...", ".a", "%C3%BC"]


@pytest.mark.parametrize("name", ["", ".", ".."])
@pytest.mark.parametrize(
    "call",
    [
        lambda workspace, name: workspace.connections.get(name),
        lambda workspace, name: workspace.alerts.acknowledge(name),
        lambda workspace, name: workspace.webhooks.deliveries(name),
        lambda workspace, name: workspace.documents("s", "d", "t").read(name),
        lambda workspace, name: workspace.documents("s", "d", name).read("i"),
        lambda workspace, name: workspace.queries.delete(name),
        lambda workspace, name: workspace.downloads.surface(name, start=NOW, end=NOW),
        lambda workspace, name: workspace.telemetry.send(name, [{}]),
        lambda workspace, name: workspace.amendments.approve("s", name),
    ],
)
def test_a_name_that_http_removes_from_paths_is_not_found(call: Callable[[Workspace, str], object], name: str) -> None:
    """Nothing has the name `.`, `..` or an empty one, because the request would go to another path."""
    with Workspace("https://plant.example", token="jwt") as workspace:
        send = workspace._transport.client.request = Mock()  # type: ignore[method-assign]
        with pytest.raises(NotFoundError, match=rf"'{re.escape(name)}' must not be empty, `\.` or `\.\.`"):
            call(workspace, name)
    send.assert_not_called()
