"""Telemetry in: messages become impulses, each exactly once in the table."""
