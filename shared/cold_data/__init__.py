"""Cold data: telemetry archived as Parquet blobs, by connection and hour."""
