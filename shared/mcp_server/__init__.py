"""Model Context Protocol server: tools for AI assistants, restricted to the rights of the caller's token."""
