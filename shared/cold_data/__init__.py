"""Cold data: telemetry kept as Parquet blobs, by connection and hour."""
