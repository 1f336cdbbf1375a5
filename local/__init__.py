"""Local host, which runs the function app on a development machine with emulators of Azure services."""
