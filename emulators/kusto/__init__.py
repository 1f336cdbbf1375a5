"""Emulator of the query endpoint of Azure Data Explorer: serves its REST API locally and runs queries on DuckDB."""
