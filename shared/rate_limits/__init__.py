"""Limits of the request rate and of concurrent requests of each principal, across all instances."""
