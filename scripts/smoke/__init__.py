"""Smoke test of a running service."""
