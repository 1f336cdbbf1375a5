"""Parts of KQL that the local query engine does not support, with reasons; and an example of each tabular operator."""

from collections.abc import Mapping

_GEOMETRY = "geometry on a sphere that requires a library of its own"
_CELLS = "cell systems S2 and H3, which require libraries of their own"
_GRAPH = "graphs"
_SERVICE = "calls another service or runs code"
_PLACE = "reads other databases, clusters or tables; queries of a workspace read its own tables only"
_CLUSTER = "a property of a cluster that a local engine does not have"

EXCLUSIONS: Mapping[str, str] = {
    # Geography: polygons, buffers and cells.
    **dict.fromkeys(
        (
            "geo_angle", "geo_azimuth", "geo_closest_point_on_line", "geo_closest_point_on_polygon", "geo_from_wkt",
            "geo_distance_point_to_polygon", "geo_intersection_2lines", "geo_intersection_2polygons",
            "geo_intersection_line_with_polygon", "geo_intersects_2lines", "geo_intersects_2polygons",
            "geo_intersects_line_with_polygon", "geo_line_buffer", "geo_line_centroid", "geo_line_densify",
            "geo_line_interpolate_point", "geo_line_locate_point", "geo_line_simplify", "geo_point_buffer",
            "geo_polygon_buffer", "geo_polygon_centroid", "geo_polygon_densify", "geo_polygon_perimeter",
            "geo_polygon_simplify", "geo_simplify_polygons_array", "geo_union_lines_array", "geo_union_polygons_array",
            "geo_geohash_neighbors", "geo_geohash_to_polygon", "geo_polygon_lookup", "geo_line_lookup",
        ),
        _GEOMETRY,
    ),
    **dict.fromkeys(
        (
            "geo_h3cell_children", "geo_h3cell_level", "geo_h3cell_neighbors", "geo_h3cell_parent", "geo_h3cell_rings",
            "geo_h3cell_to_central_point", "geo_h3cell_to_polygon", "geo_line_to_s2cells", "geo_point_to_h3cell",
            "geo_point_to_s2cell", "geo_polygon_to_h3cells", "geo_polygon_to_s2cells", "geo_s2cell_neighbors",
            "geo_s2cell_to_central_point", "geo_s2cell_to_polygon",
        ),
        _CELLS,
    ),
    "geo_info_from_ip_address": "requires a database of the locations of addresses",
    # Graphs.
    **dict.fromkeys(
        (
            "all", "any", "inner_nodes", "labels", "map", "node_degree_in", "node_degree_out", "node_id", "graph",
            "MakeGraphOperator", "GraphMatchOperator", "GraphShortestPathsOperator", "GraphToTableOperator",
            "GraphMarkComponentsOperator", "GraphWhereEdgesOperator", "GraphWhereNodesOperator",
        ),
        _GRAPH,
    ),
    # Other places.
    **dict.fromkeys(
        ("cluster", "database", "external_table", "entity_group", "stored_query_result", "MacroExpandOperator"), _PLACE
    ),
    **dict.fromkeys(
        (
            "ai_chat_completion", "ai_chat_completion_prompt", "ai_embeddings", "azure_digital_twins_query_request",
            "cosmosdb_sql_request", "csharp", "execute_query", "execute_show_command", "external_datatable",
            "http_request", "http_request_post", "identity", "identity_v3", "infer_storage_schema",
            "infer_storage_schema_with_suggestions", "mysql_request", "python", "r", "sql_request",
        ),
        _SERVICE,
    ),
    # Properties of a cluster.
    **dict.fromkeys(
        ("cursor_after", "cursor_before_or_at", "row_id", "estimate_rows_count", "ExecuteAndCacheOperator"), _CLUSTER
    ),
    "parse_user_agent": "requires a database of browsers and devices",
}  # fmt: skip
"""Reason why the local query engine does not support a function, plugin or operator of KQL, by name."""

OPERATORS: Mapping[str, tuple[str, str]] = {
    "AsOperator": ("as", "Telemetry | as T | union T"),
    "AssertSchemaOperator": ("assert-schema", "print a = 1 | assert-schema (a:long)"),
    "ConsumeOperator": ("consume", "Telemetry | consume"),
    "CountOperator": ("count", "Telemetry | count"),
    "DistinctOperator": ("distinct", "Telemetry | distinct DeviceId"),
    "EvaluateOperator": ("evaluate", "Telemetry | evaluate narrow()"),
    "ExtendOperator": ("extend", "Telemetry | extend a = 1"),
    "FacetOperator": ("facet", "Telemetry | facet by DeviceId"),
    "FilterOperator": ("where", "Telemetry | where DeviceId == 'a'"),
    "FindOperator": ("find", "find in (Telemetry) where DeviceId == 'a'"),
    "ForkOperator": ("fork", "Telemetry | fork (count) (take 1)"),
    "GetSchemaOperator": ("getschema", "Telemetry | getschema"),
    "InvokeOperator": ("invoke", "let f = (T:(*)) { T | count }; Telemetry | invoke f()"),
    "JoinOperator": ("join", "Telemetry | join kind=inner Telemetry on DeviceId"),
    "LookupOperator": ("lookup", "Telemetry | lookup Telemetry on DeviceId"),
    "MakeSeriesOperator": ("make-series", "Telemetry | make-series count() on Timestamp step 1d"),
    "MvApplyOperator": ("mv-apply", "Telemetry | mv-apply Payload on (count)"),
    "MvExpandOperator": ("mv-expand", "Telemetry | mv-expand Payload"),
    "ParseKvOperator": ("parse-kv", "Telemetry | parse-kv DeviceId as (a:long)"),
    "ParseOperator": ("parse", "Telemetry | parse DeviceId with 'a' b"),
    "ParseWhereOperator": ("parse-where", "Telemetry | parse-where DeviceId with 'a' b"),
    "PartitionByOperator": ("partition by", "Telemetry | partition by DeviceId (count)"),
    "PartitionOperator": ("partition", "Telemetry | partition hint.strategy=native by DeviceId (count)"),
    "PrintOperator": ("print", "print 1"),
    "ProjectAwayOperator": ("project-away", "Telemetry | project-away DeviceId"),
    "ProjectByNamesOperator": ("project-by-names", "Telemetry | project-by-names 'D*'"),
    "ProjectKeepOperator": ("project-keep", "Telemetry | project-keep DeviceId"),
    "ProjectOperator": ("project", "Telemetry | project DeviceId"),
    "ProjectRenameOperator": ("project-rename", "Telemetry | project-rename a = DeviceId"),
    "ProjectReorderOperator": ("project-reorder", "Telemetry | project-reorder DeviceId"),
    "RangeOperator": ("range", "range x from 1 to 2 step 1"),
    "ReduceByOperator": ("reduce by", "Telemetry | reduce by DeviceId"),
    "RenderOperator": ("render", "Telemetry | render timechart"),
    "SampleDistinctOperator": ("sample-distinct", "Telemetry | sample-distinct 1 of DeviceId"),
    "SampleOperator": ("sample", "Telemetry | sample 1"),
    "ScanOperator": ("scan", "Telemetry | sort by Timestamp | scan with (step s: true;)"),
    "SearchOperator": ("search", "search 'a'"),
    "SerializeOperator": ("serialize", "Telemetry | serialize"),
    "SortOperator": ("sort", "Telemetry | sort by Timestamp"),
    "SummarizeOperator": ("summarize", "Telemetry | summarize count()"),
    "TakeOperator": ("take", "Telemetry | take 1"),
    "TopHittersOperator": ("top-hitters", "Telemetry | top-hitters 1 of DeviceId"),
    "TopNestedOperator": ("top-nested", "Telemetry | top-nested 1 of DeviceId by count()"),
    "TopOperator": ("top", "Telemetry | top 1 by Timestamp"),
    "UnionOperator": ("union", "union Telemetry, Telemetry"),
}
"""Name in KQL and an example query of each tabular operator, by the operator's syntax kind in the language service."""
