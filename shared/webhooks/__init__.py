"""Webhooks: endpoints (URLs) of users, the events for them, and signed deliveries (Standard Webhooks 1.0)."""
