"""Cold downloads: jobs that turn archived telemetry into files to fetch."""
