"""Replay of CSV files as telemetry of a connection."""
