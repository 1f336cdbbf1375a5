"""Idempotency keys of requests, and stored replies to repeated requests."""
