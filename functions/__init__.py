"""Azure Functions of the service, and the table of all HTTP routes.

``GROUPS`` lists each HTTP operation by method and route. The module of a group declares its operations in full and is
imported at the first request to the group, because import time is cold-start time. Triggers are imported at once.
"""

from functions import download_jobs, triggers
from functions.http_blueprint import build_catch_all_blueprint, build_http_blueprint
from functions.lazy_groups import LazyGroup

GROUPS = (
    LazyGroup("health", "functions.health", "GET healthz", "GET readyz"),
    LazyGroup(
        "keys",
        "functions.tokens",
        "GET workspace/api/keys/jwt",
        "DELETE workspace/api/keys/jwt/{jti}",
        "POST workspace/api/keys",
        "GET workspace/api/keys",
        "DELETE workspace/api/keys/{keyId}",
        "GET workspace/api/keys/whoami",
        "GET .well-known/jwks.json",
    ),
    LazyGroup(
        "warm-queries",
        "functions.warm_queries",
        "GET oi-api/warm-queries/{*lookup}",
        "GET api/workspaces/explorer/warm-queries/{queryId}",
        "POST oi-api/warm-queries",
    ),
    LazyGroup(
        "warm-query-definitions",
        "functions.warm_query_definitions",
        "GET oi-api/warm-queries",
        "PUT oi-api/warm-queries/{lookup}",
        "DELETE oi-api/warm-queries/{lookup}",
        "POST oi-api/warm-queries/{lookup}/approve",
    ),
    LazyGroup("telemetry", "functions.telemetry", "POST oi-api/telemetry/{lookup}"),
    LazyGroup(
        "live-stream",
        "functions.live_stream",
        "GET oi-api/live-stream",
        "GET oi-api/live-stream/negotiate",
        "OPTIONS oi-api/live-stream/events",
        "POST oi-api/live-stream/events",
    ),
    LazyGroup(
        "downloads",
        "functions.downloads",
        "POST oi-api/downloads/data-connections/{lookup}",
        "POST oi-api/downloads/surfaces/{surfaceLookup}",
        "POST oi-api/downloads/surfaces/{surfaceLookup}/connection/{connLookup}",
        "GET oi-api/downloads",
        "GET oi-api/downloads/{downloadId}",
        "DELETE oi-api/downloads/{downloadId}",
        durable=True,
    ),
    LazyGroup(
        "provenance",
        "functions.provenance_events",
        "POST oi-api/provenance/events",
        "GET oi-api/provenance/events/query",
        "POST oi-api/provenance/events/verify",
        "GET oi-api/provenance/events/export",
        "GET oi-api/provenance/checkpoint",
        "GET oi-api/provenance/proof",
        "GET .well-known/oi-checkpoint-key",
    ),
    LazyGroup(
        "amendments",
        "functions.amendments",
        "POST oi-api/provenance/amendments",
        "GET oi-api/provenance/amendments",
        "GET oi-api/provenance/amendments/chain",
        "GET oi-api/provenance/reason-categories",
        "POST oi-api/provenance/amendments/{id}/approve",
        "POST oi-api/provenance/amendments/{id}/reject",
    ),
    LazyGroup(
        "containers",
        "functions.containers",
        "GET oi-api/data-stores/{lookup}/containers",
        "POST oi-api/data-stores/{lookup}/containers",
        "DELETE oi-api/data-stores/{lookup}/containers/{containerName}",
    ),
    LazyGroup(
        "table-documents",
        "functions.table_documents",
        "GET oi-api/data-stores/{store}/databases/{database}/tables/{table}",
        "POST oi-api/data-stores/{store}/databases/{database}/tables/{table}",
        "GET oi-api/data-stores/{store}/databases/{database}/tables/{table}/{documentId}",
        "PUT oi-api/data-stores/{store}/databases/{database}/tables/{table}/{documentId}",
        "DELETE oi-api/data-stores/{store}/databases/{database}/tables/{table}/{documentId}",
    ),
    LazyGroup(
        "graphql",
        "functions.graphql",
        "POST v1/{workspaceId}/graphql",
        "GET v1/{workspaceId}/graphql",
        has_own_error_format=True,
    ),
    LazyGroup(
        "mcp",
        "functions.mcp",
        "POST oi-api/mcp",
        "GET .well-known/oauth-protected-resource/oi-api/mcp",
        has_own_error_format=True,
    ),
    LazyGroup("openapi", "functions.openapi", "GET oi-api/openapi"),
    LazyGroup(
        "pages",
        "functions.pages",
        "GET ",
        "GET console",
        "GET console/",
        "GET console/config.json",
        "GET console/{*file}",
        "GET oi-api/explorer",
        "GET oi-api/explorer/{*file}",
        "GET v1/{workspaceId}/graphiql",
        "GET v1/{workspaceId}/graphiql/{*file}",
    ),
)
BLUEPRINTS = (
    build_http_blueprint(GROUPS),
    triggers.blueprint,
    download_jobs.blueprint,
    build_catch_all_blueprint(),
)
