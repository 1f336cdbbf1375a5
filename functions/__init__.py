"""The edge of the app: one module per endpoint group; this is their table of contents."""

from functions import (
    amendments,
    archive,
    checkpoints,
    containers,
    download_jobs,
    downloads,
    graphql,
    health,
    ingest,
    live,
    live_stream,
    mcp,
    openapi,
    pages,
    provenance_events,
    simulators,
    table_documents,
    telemetry,
    tokens,
    warm_queries,
    warm_query_definitions,
)
from functions.http_blueprint import catch_all_blueprint, http_blueprint

GROUPS = (
    health.GROUP,
    tokens.GROUP,
    warm_queries.GROUP,
    warm_query_definitions.GROUP,
    telemetry.GROUP,
    live_stream.GROUP,
    downloads.GROUP,
    provenance_events.GROUP,
    amendments.GROUP,
    containers.GROUP,
    table_documents.GROUP,
    graphql.GROUP,
    mcp.GROUP,
    openapi.GROUP,
    pages.GROUP,
)
BLUEPRINTS = (
    *(http_blueprint(group, durable=group is downloads.GROUP) for group in GROUPS),
    ingest.blueprint,
    archive.blueprint,
    live.blueprint,
    simulators.blueprint,
    checkpoints.blueprint,
    download_jobs.blueprint,
    catch_all_blueprint(),
)
