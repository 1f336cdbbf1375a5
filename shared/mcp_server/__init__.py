"""The Model Context Protocol interface: what AI assistants may do, under the rights of the token that they carry."""
