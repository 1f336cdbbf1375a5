"""Emulator of the Durable Task extension of Azure Functions, which stores orchestrations in SQLite."""
