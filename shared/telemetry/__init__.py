"""Telemetry ingestion: messages become impulses, and each impulse is stored exactly once."""
