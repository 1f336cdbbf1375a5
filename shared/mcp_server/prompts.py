"""Prompt templates of the MCP server for common tasks."""

from typing import Final

from shared.mcp_server.capabilities import Prompt, PromptArgument

_HOW = (
    "Use the workspace's tools. Prefer an approved warm query over an ad-hoc one, and name the query and who approved "
    "it. State the time window that you examined, and whether a result was truncated. Do not guess data that no tool "
    "returned."
)

INVESTIGATE: Final = Prompt(
    "investigate_excursion",
    "Investigate an excursion",
    "Find out when a measurement exceeded its limits, what else happened then, and what was recorded about it.",
    (
        PromptArgument("connection", "Lookup of the data connection."),
        PromptArgument("measurement", "Name of the measured value, for instance Pressure."),
        PromptArgument("limit", "The exceeded limit, for instance 'above 6 bar'."),
        PromptArgument("timeRange", "How far back to look, ISO 8601, for instance P1D.", required=False),
    ),
    "Investigate when {measurement} of the data connection {connection} was {limit}; look back {timeRange}. "
    "1. Find the first and last time of each excursion and its extreme. 2. Look at the other measurements of the "
    f"connection's surfaces around it. 3. Look for audit events and amendments about it in that time. {_HOW}",
)
AUDIT: Final = Prompt(
    "prepare_audit_answer",
    "Prepare an audit answer",
    "Gather what is recorded about an entity, prove that the record is unbroken, and write the answer.",
    (
        PromptArgument("entityType", "Type of the entity, for instance Batch."),
        PromptArgument("entityId", "Id of the entity."),
        PromptArgument("scopeKey", "Scope of its records."),
        PromptArgument("question", "Question of the auditor.", required=False),
    ),
    "An auditor asks about the {entityType} {entityId} in the scope {scopeKey}: {question}. "
    "1. Query its audit events and its amendments. 2. Verify the scope's audit chain and quote the verdict. "
    f"3. In the answer, state who did what, when, why, and who approved it, each with its RecordID. {_HOW}",
)
COMPARE: Final = Prompt(
    "compare_lines",
    "Compare two lines",
    "Compare the telemetry of two surfaces over the same window.",
    (
        PromptArgument("first", "Lookup of the first surface."),
        PromptArgument("second", "Lookup of the second surface."),
        PromptArgument("timeRange", "The window, ISO 8601, for instance PT8H.", required=False),
    ),
    "Compare the surfaces {first} and {second} over the last {timeRange}. 1. List their connections and warm queries. "
    f"2. Run queries that both have in common over the same window. 3. Tabulate the differences. {_HOW}",
)
ALERT: Final = Prompt(
    "investigate_alert",
    "Investigate an alert",
    "Find out why an alert fired, whether it is real, and what a person should do next.",
    (
        PromptArgument("rule", "Lookup of the alert rule."),
        PromptArgument("labels", "Labels of the alert, for instance DeviceId=pump-1.", required=False),
        PromptArgument("timeRange", "How far back to look, ISO 8601, for instance P1D.", required=False),
    ),
    "Investigate the newest alert of the rule {rule} with {labels}; look back {timeRange}. 1. Read the rule, its state "
    "and its alerts: when did it fire, how often before, who acknowledged it? 2. Run the rule's warm query over that "
    "time and compare the values with the condition before, during and after the alert. 3. Check the connection's last "
    "message and the audit events of that time. 4. State the likely cause, what contradicts it, and the next step. "
    f"{_HOW}",
)
PROMPTS: Final = (INVESTIGATE, AUDIT, COMPARE, ALERT)
DEFAULTS: Final = {"timeRange": "P1D", "labels": "any labels", "question": "what happened, and is the record complete?"}
"""Values of missing optional arguments."""
