"""Limits of the request rate and concurrency of each principal, over all instances together."""
