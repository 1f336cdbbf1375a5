"""The embedded Kusto endpoint: the query REST API of Azure Data Explorer over DuckDB, on loopback, for a desk."""
