"""Replay: command that sends the rows of CSV files as telemetry of a data connection."""
