"""Free space of the disk that stores the workspace's data."""
