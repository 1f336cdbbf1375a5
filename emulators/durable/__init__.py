"""Stand-in for the Durable Task extension: orchestrations replayed over a history kept in SQLite."""
