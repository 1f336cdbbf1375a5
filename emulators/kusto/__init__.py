"""Emulator of the query endpoint of Azure Data Explorer: serves its REST API locally, and runs KQL on DuckDB."""
