"""Telemetry ingestion: messages become impulses (normalised messages); a repeat within 24 hours is not stored again."""
