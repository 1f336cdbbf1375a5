"""Fair use by principals: quotas of streams, jobs and stored bytes, turns for long work, limits of running tasks."""
