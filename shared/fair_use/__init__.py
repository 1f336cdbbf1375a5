"""Fair use by principals: quotas of streams, jobs and stored bytes, turns for long work, and limits of tasks at once."""
