"""The workspace: what is declared or made in it, and how a document of it is applied."""
