"""Entry point of the Functions host: creates the app and registers every function."""

import sys

import azure.functions as func

from functions import BLUEPRINTS

# Large texts are parsed in worker threads, and the event loop waits for one switch interval (default: 5 ms) at a time.
sys.setswitchinterval(0.001)

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
for blueprint in BLUEPRINTS:
    app.register_functions(blueprint)
