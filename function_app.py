"""The function app: every function of the service, by endpoint group."""

import azure.functions as func

from functions import BLUEPRINTS

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
for blueprint in BLUEPRINTS:
    app.register_functions(blueprint)
