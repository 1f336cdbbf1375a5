"""Telemetry ingestion: messages become impulses (normalised messages), each of which is stored exactly once."""
