"""Fair use by principals: quotas of live streams, unfinished jobs and stored bytes, and turns for long work."""
