"""Document-store accounts of the workspace: their containers, and the documents that containers expose as tables."""
