"""Cold downloads: jobs that convert archived telemetry to downloadable files."""
