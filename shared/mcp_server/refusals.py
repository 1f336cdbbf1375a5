"""Refusals as outcomes of tools: the problem document that a route would have answered."""

import json

from shared.errors import WorkspaceError
from shared.http.problems import problem_reply
from shared.mcp_server.offers import Outcome
from shared.observability.logs import request_id


def refused(error: WorkspaceError) -> Outcome:
    """Return an error as a tool's outcome, for the model to read."""
    return Outcome(json.loads(problem_reply(error, request_id.get()).body), is_error=True)
