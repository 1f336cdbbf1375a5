"""Pipeline that processes every HTTP request, and the declaration of operations."""
