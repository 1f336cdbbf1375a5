"""Entry point of the Functions host: creates the app and registers every function."""

import sys

import azure.functions as func

from functions import BLUEPRINTS

# Worker threads parse large texts. While one runs, the event loop waits up to one switch interval (default: 5 ms).
sys.setswitchinterval(0.001)

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
for blueprint in BLUEPRINTS:
    app.register_functions(blueprint)
