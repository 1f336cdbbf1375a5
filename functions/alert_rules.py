"""HTTP operations on alert rules: list, read, create, replace, delete, evaluate."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from functions.catalog_items import (
    LIVE_MEMBERS,
    add_field_errors,
    build_item_list_reply,
    build_item_reply,
    check_conditional_headers,
    check_lookup,
    get_caller,
    get_catalog_administration,
    last_change_to_json,
)
from functions.conditions import parse_conditional_headers
from functions.idempotency import reject_reused_idempotency_key
from functions.paging import CatalogPageQuery, build_cursor_check, select_page
from functions.reply_docs import alert_rules as replies
from shared.alerts.evaluation import list_rule_errors_against_query
from shared.alerts.models import RuleState
from shared.alerts.rule_results import build_status_report
from shared.alerts.service import Trial
from shared.auth.rights import AccessRight
from shared.catalog.administration import build_alert_rule_not_found_error, find_item
from shared.catalog.alert_rule_checks import try_parse_stored_query
from shared.catalog.alert_rule_models import AlertRuleFields, has_same_query_use
from shared.catalog.fields import DECLARED
from shared.catalog.item_checks import find_alert_rule_errors
from shared.catalog.items import ItemKind
from shared.catalog.models import AlertRule
from shared.catalog.ports import CatalogItem, StoredCatalog
from shared.catalog.snapshot import CatalogEntry
from shared.errors import FieldError, ValidationErrors
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Call, Group, ServerManagedProperties, StrictBody
from shared.http.unknown_names import map_accepted_names_to_documented_names
from shared.timestamps import format_rfc3339
from shared.wiring import services

GROUP = Group("alert-rules")
_ROUTE = "oi-api/alert-rules/{lookup}"
_TRIAL_SIZE = 100
"""Estimated number of characters of one group's result in the reply to a trial evaluation."""
_LIVE = LIVE_MEMBERS | {"state", "error", "lastEvaluatedAt", "nextEvaluationAt"}


class AlertRuleBody(AlertRuleFields, StrictBody):
    """Request body that defines an alert rule; if `enabled` is omitted, the stored value stays."""

    validation_context: ClassVar[Mapping[str, Any]] = DECLARED


@GROUP.endpoint(
    "GET",
    "oi-api/alert-rules",
    right=AccessRight.ALERT_READ,
    query=CatalogPageQuery,
    check=build_cursor_check("alert rules"),
    docs=replies.RULES_LISTED,
)
async def list_alert_rules(call: Call[CatalogPageQuery]) -> Reply:
    """Return the alert rules with their state, sorted by lookup.

    The lookup of a rule is its short name in URLs.
    """
    catalog = await services().catalog.get_current_catalog()
    page, cursor = select_page("alert rules", catalog.alert_rules, call.query)
    states = await services().alerts.service.load_states_by_rule()

    def rule_to_json(lookup: str) -> dict[str, Any]:
        return _rule_to_json(catalog.items[ItemKind.ALERT_RULE, lookup], states.get(lookup))

    return await build_item_list_reply("rules", page, cursor, rule_to_json)


@GROUP.endpoint("GET", _ROUTE, right=AccessRight.ALERT_READ, docs=replies.RULE_READ)
async def read_alert_rule(call: Call) -> Reply:
    """Return an alert rule with its state."""
    catalog = await services().catalog.get_current_catalog()
    if call.path["lookup"] not in catalog.alert_rules:
        raise build_alert_rule_not_found_error(call.path["lookup"])
    return build_item_reply(
        await _find_state_and_build_rule_json(catalog.items[ItemKind.ALERT_RULE, call.path["lookup"]])
    )


async def _read_current_rule(path_parameters: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the stored rule as JSON with its read-only properties.

    If the rule does not exist, return an object with only its lookup (short name in URLs).
    """
    item = await get_catalog_administration().find(ItemKind.ALERT_RULE, path_parameters["lookup"])
    return {"lookup": path_parameters["lookup"]} if item is None else await _find_state_and_build_rule_json(item)


async def _check_rule(call: Call[Any, AlertRuleBody], faults: ValidationErrors) -> None:
    check_lookup(faults, call.path["lookup"])
    check_conditional_headers(faults, call.request)
    if not faults.has_valid_fields("kind"):
        return
    rule = _build_rule("any", call.body, None)
    stored = await services().provenance.catalog_service.load()
    keys = {kind: [item.key for item in stored.items if item.kind == kind] for kind in ItemKind}
    add_field_errors(faults, find_alert_rule_errors(rule, keys[ItemKind.CONNECTION], keys[ItemKind.SURFACE]))
    if (
        rule.query is not None
        and faults.has_valid_fields("query", "parameters", "timeRange", "condition", "groupBy")
        and not _is_query_use_unchanged(rule, call.path["lookup"], stored)
    ):
        with faults.collect_raised_error():
            add_field_errors(faults, await _list_query_errors(rule, stored, call.principal.rights))


def _is_query_use_unchanged(rule: AlertRule, lookup: str, stored: StoredCatalog) -> bool:
    item = find_item(stored, ItemKind.ALERT_RULE, lookup)
    # Other fields of the rule can be invalid, so that their values do not have the types of the model.
    definition = rule.model_dump(mode="json", by_alias=True, warnings=False)
    return has_same_query_use(None if item is None else item.definition, definition)


async def _list_query_errors(
    rule: AlertRule, stored: StoredCatalog, rights: frozenset[AccessRight]
) -> list[FieldError]:
    """Compare a threshold rule with the saved query that it evaluates, and return the errors of the rule.

    An example is a condition on a column that the query's result does not have.
    """
    item = find_item(stored, ItemKind.WARM_QUERY, str(rule.query))
    query, columns = None if item is None else try_parse_stored_query(item.definition), services().queries.columns
    if query is None:
        return [FieldError("query", f"the workspace has no warm query {rule.query}")]
    return await list_rule_errors_against_query(
        rule, query, columns, is_query_readable=AccessRight.CATALOG_READ in rights
    )


@GROUP.endpoint(
    "PUT",
    _ROUTE,
    right=AccessRight.ALERT_MANAGE,
    body=AlertRuleBody,
    server_set=ServerManagedProperties(
        frozenset(replies.AlertRuleDefinition.__annotations__)
        - map_accepted_names_to_documented_names(AlertRuleBody).keys(),
        _read_current_rule,
        volatile=_LIVE,
    ),
    check=_check_rule,
    docs=replies.RULE_PUT,
)
async def put_alert_rule(call: Call[Any, AlertRuleBody]) -> Reply:
    """Create an alert rule, or replace its definition."""
    lookup, condition = call.path["lookup"], parse_conditional_headers(call.request)
    build = partial(_build_rule, lookup, call.body)
    replaced = await get_catalog_administration().put(get_caller(call), ItemKind.ALERT_RULE, lookup, build, condition)
    return build_item_reply(await _find_state_and_build_rule_json(replaced.item), is_new=replaced.is_new)


@GROUP.endpoint("DELETE", _ROUTE, right=AccessRight.ALERT_MANAGE, docs=replies.RULE_DELETED)
async def delete_alert_rule(call: Call) -> Reply:
    """Delete an alert rule; its alerts are resolved."""
    lookup, condition = call.path["lookup"], parse_conditional_headers(call.request)
    await get_catalog_administration().delete(get_caller(call), ItemKind.ALERT_RULE, lookup, condition)
    return Reply(204)


@GROUP.endpoint("POST", f"{_ROUTE}/evaluate", right=AccessRight.ALERT_MANAGE, docs=replies.RULE_EVALUATED)
async def evaluate_alert_rule(call: Call) -> Reply:
    """Evaluate an alert rule once, even if it is disabled; return whether each alert would fire, and change nothing."""
    async with reject_reused_idempotency_key(call):
        catalog = await services().catalog.get_current_catalog()
        entry = catalog.alert_rules.get(call.path["lookup"])
        if entry is None:
            raise build_alert_rule_not_found_error(call.path["lookup"])
        trial = await services().alerts.service.run_trial_evaluation(entry)
    size = len(trial.alerts) * _TRIAL_SIZE
    return await services().runtime.run_in_thread_if_large(size, _build_trial_reply, trial)


def _build_trial_reply(trial: Trial) -> Reply:
    alerts = [{"labels": one.labels, "value": one.value, "wouldFire": one.would_fire} for one in trial.alerts]
    return build_json_reply({"alerts": alerts, "rows": trial.rows, "error": trial.error})


def _build_rule(lookup: str, body: AlertRuleBody, stored_rule: Mapping[str, Any] | None) -> AlertRule:
    """Build the rule from a request body; if the body omits `enabled`, use the value of ``stored_rule``."""
    fields = {name: getattr(body, name) for name in AlertRuleFields.model_fields}
    if stored_rule is not None and "enabled" not in body.model_fields_set:
        fields["enabled"] = bool(stored_rule.get("enabled", True))
    return AlertRule.model_construct(lookup=lookup, **fields)


async def _find_state_and_build_rule_json(item: CatalogItem) -> dict[str, Any]:
    return _rule_to_json(item, await services().alerts.service.find_rule_state(item.key))


def _rule_to_json(item: CatalogItem, state: RuleState | None) -> dict[str, Any]:
    rule = AlertRule.model_validate(item.definition)
    report = build_status_report(CatalogEntry(rule, item.created_at, item.updated_at, item.edited_by), state)
    return {
        **rule.model_dump(mode="json", by_alias=True),
        "state": report.status,
        "error": report.error,
        "lastEvaluatedAt": None if report.evaluated_at is None else format_rfc3339(report.evaluated_at),
        "nextEvaluationAt": None if report.due_at is None else format_rfc3339(report.due_at),
        **last_change_to_json(item),
    }
