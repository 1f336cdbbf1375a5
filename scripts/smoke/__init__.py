"""One tour through a running service."""
