"""The function app: every function of the service, by endpoint group."""

import sys

import azure.functions as func

from functions import BLUEPRINTS

# Large texts are read in worker threads. The event loop waits for each switch from one, five milliseconds by default.
sys.setswitchinterval(0.001)

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
for blueprint in BLUEPRINTS:
    app.register_functions(blueprint)
