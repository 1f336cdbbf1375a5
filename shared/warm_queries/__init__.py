"""Warm queries: saved and approved KQL queries over recent telemetry, run with typed parameters."""
