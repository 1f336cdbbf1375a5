"""The local host: runs the function app on a desk, with stand-ins for what Azure hosts. Never imported by the app."""
