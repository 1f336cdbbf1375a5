"""Quotas of a principal: the number of open live streams and unfinished jobs, and the bytes of stored files."""
