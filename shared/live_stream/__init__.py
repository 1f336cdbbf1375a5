"""Live stream: admission of listeners, publishing of impulses, and replay of earlier impulses."""
