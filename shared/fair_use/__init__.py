"""Fair use by principals (users and services): quotas, limits of running tasks, and scheduling of tasks in turn.

The quotas limit the live streams, jobs and stored bytes of each principal.
"""
