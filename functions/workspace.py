"""HTTP operations on the workspace: its name, its description and its policies."""

from collections.abc import Mapping
from typing import Any, ClassVar

from functions.catalog_items import (
    LIVE_MEMBERS,
    add_field_errors,
    build_item_reply,
    check_conditional_headers,
    get_caller,
    get_catalog_administration,
)
from functions.conditions import parse_conditional_headers
from functions.reply_docs import workspace as replies
from shared.auth.rights import AccessRight
from shared.catalog.administration import get_workspace_and_settings_definitions
from shared.catalog.etags import compute_definition_etag
from shared.catalog.fields import DECLARED
from shared.catalog.item_checks import find_settings_errors
from shared.catalog.items import SINGLETON_KEY, WorkspaceSettings
from shared.catalog.models import Policies, WorkspaceInfo
from shared.catalog.ports import StoredCatalog
from shared.catalog.reader import build_catalog
from shared.catalog.snapshot import Catalog
from shared.errors import ValidationErrors
from shared.http.messages import Reply
from shared.http.operations import Call, Group, ServerManagedProperties, StrictBody
from shared.http.unknown_names import map_accepted_names_to_documented_names
from shared.rate_limits.models import get_rate_limit_budget
from shared.validation.names import Name
from shared.wiring import services

GROUP = Group("workspace")
_ROUTE = "oi-api/workspace"


class WorkspaceBody(StrictBody):
    """Request body that changes the workspace."""

    validation_context: ClassVar[Mapping[str, Any]] = DECLARED

    name: Name
    description: str | None = None
    policies: Policies


@GROUP.endpoint("GET", _ROUTE, right=AccessRight.CATALOG_READ, docs=replies.WORKSPACE_READ)
async def read_workspace(_: Call) -> Reply:
    """Return the workspace with its limits, its policies and the number of its items of each kind."""
    catalog = await services().catalog.get_current_catalog()
    return build_item_reply(_workspace_to_json(catalog))


async def _read_current_workspace(_: Mapping[str, str]) -> Mapping[str, Any]:
    stored = await services().provenance.catalog_service.load()
    return _workspace_to_json(await services().runtime.run_in_thread(build_catalog, stored))


async def _check_workspace(call: Call[Any, WorkspaceBody], faults: ValidationErrors) -> None:
    check_conditional_headers(faults, call.request)
    if faults.has_valid_fields("policies"):
        stored = await services().provenance.catalog_service.load()
        add_field_errors(
            faults,
            find_settings_errors(*_build_info_and_settings(call.body, *get_workspace_and_settings_definitions(stored))),
        )


@GROUP.endpoint(
    "PUT",
    _ROUTE,
    right=AccessRight.POLICY_MANAGE,
    body=WorkspaceBody,
    server_set=ServerManagedProperties(
        frozenset(replies.WorkspaceDescription.__annotations__)
        - map_accepted_names_to_documented_names(WorkspaceBody).keys(),
        _read_current_workspace,
        volatile=LIVE_MEMBERS,
    ),
    check=_check_workspace,
    docs=replies.WORKSPACE_PUT,
)
async def put_workspace(call: Call[Any, WorkspaceBody]) -> Reply:
    """Change the name, the description and the policies of the workspace."""

    def build_models(
        stored_workspace: Mapping[str, Any], stored_settings: Mapping[str, Any]
    ) -> tuple[WorkspaceInfo, WorkspaceSettings]:
        return _build_info_and_settings(call.body, stored_workspace, stored_settings)

    condition = parse_conditional_headers(call.request)
    stored = await get_catalog_administration().put_workspace_and_settings(get_caller(call), build_models, condition)
    return build_item_reply(_workspace_to_json(await services().runtime.run_in_thread(build_catalog, stored)))


def _build_info_and_settings(
    body: WorkspaceBody, stored_workspace: Mapping[str, Any], stored_settings: Mapping[str, Any]
) -> tuple[WorkspaceInfo, WorkspaceSettings]:
    """Build the models of the workspace from their stored definitions, with the changes that the request body makes."""
    info = WorkspaceInfo.model_construct(id=stored_workspace["id"], name=body.name, description=body.description)
    before = WorkspaceSettings.model_validate(stored_settings)
    return info, before.model_copy(update={"policies": body.policies})


def _workspace_to_json(catalog: Catalog) -> dict[str, Any]:
    singletons = [item for (_, key), item in catalog.items.items() if key == SINGLETON_KEY]
    definitions = get_workspace_and_settings_definitions(StoredCatalog(catalog.version, tuple(singletons)))
    workspace, budget = WorkspaceInfo.model_validate(definitions[0]), get_rate_limit_budget(catalog)
    return {
        **workspace.model_dump(mode="json"),
        "tier": catalog.tier.value,
        "limits": {"requestsPerMinute": budget.requests, "concurrent": budget.concurrent},
        "policies": catalog.policies.model_dump(mode="json", by_alias=True),
        "stats": {
            "connectionCount": len(catalog.connections),
            "surfaceCount": len(catalog.surfaces),
            "queryCount": len(catalog.queries),
            "memberCount": len(catalog.members),
        },
        "version": catalog.version,
        "etag": compute_definition_etag(*definitions),
    }
