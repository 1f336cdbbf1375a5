"""Recurring background jobs: their schedules, their leases, and the runner that starts them."""
