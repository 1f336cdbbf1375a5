"""The command ``oi``."""
