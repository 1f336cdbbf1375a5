"""Emulator of the query endpoint of Azure Data Explorer: its REST API on loopback, over DuckDB."""
