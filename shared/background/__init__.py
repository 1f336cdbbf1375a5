"""Recurring background jobs: schedules, leases, and the runner that starts the jobs."""
