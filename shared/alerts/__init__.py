"""Alerts: evaluation of alert rules, the state of each alert, and acknowledgement by users."""
