"""Smoke test: checks that the main features of a running service work."""
