"""Logs, metrics, traces and readiness of the process."""
