"""How values of Kusto's types stand inside a dynamic, and as texts."""

macros: tuple[str, ...] = (
    (
        "CREATE OR REPLACE MACRO kql_span(i) AS list_transform([epoch_us(i)], lambda _u: "
        "CASE WHEN _u < 0 THEN '-' ELSE '' END "
        "|| CASE WHEN abs(_u) >= 86400000000 THEN CAST(abs(_u) // 86400000000 AS VARCHAR) || '.' ELSE '' END "
        "|| lpad(CAST(abs(_u) // 3600000000 % 24 AS VARCHAR), 2, '0') "
        "|| ':' || lpad(CAST(abs(_u) // 60000000 % 60 AS VARCHAR), 2, '0') "
        "|| ':' || lpad(CAST(abs(_u) // 1000000 % 60 AS VARCHAR), 2, '0') "
        "|| CASE WHEN _u % 1000000 <> 0 THEN '.' || lpad(CAST(abs(_u) % 1000000 AS VARCHAR), 6, '0') || "
        "'0' ELSE '' END)[1]"
    ),
    # The argument stands here several times: it may only be given a name or a constant.
    (
        "CREATE OR REPLACE MACRO kql_json(v) AS CASE typeof(v) "
        "WHEN 'TIMESTAMP' THEN to_json(strftime(CAST(CAST(v AS VARCHAR) AS TIMESTAMP), "
        "'%Y-%m-%dT%H:%M:%S.%f') || '0Z') "
        "WHEN 'INTERVAL' THEN to_json(kql_span(CAST(CAST(v AS VARCHAR) AS INTERVAL))) ELSE to_json(v) END"
    ),
)


def install() -> None:
    """Teach the translator nothing: these are for the SQL of other families."""
