"""Idempotency keys, and stored replies to repeated requests."""
