"""Recurring work of the app: which jobs there are, when each is due, and which instance runs it."""
