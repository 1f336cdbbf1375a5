"""Types, by the names that Kusto gives them in a text."""

SQL_TYPES = {
    "bool": "BOOLEAN",
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "real": "DOUBLE",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "datetime": "TIMESTAMP",
    "date": "TIMESTAMP",
    "timespan": "INTERVAL",
    "time": "INTERVAL",
    "guid": "UUID",
    "dynamic": "JSON",
}
"""How DuckDB calls Kusto's types."""
