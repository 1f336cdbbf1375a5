"""Warm queries: approved KQL over telemetry, run with typed parameters."""
