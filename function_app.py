"""Entry point of the Functions host: creates the app and registers every function."""

import gc
import os
import sys

# Imports create objects that exist until the process ends; a garbage collection in between finds nothing to delete.
gc.disable()
# To find plugins of pydantic, the first model would read the metadata of every installed package. There are none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import azure.functions as func  # noqa: E402  after the two settings above

from functions import BLUEPRINTS  # noqa: E402  the same
from shared.interpreter import exempt_objects_from_garbage_collection  # noqa: E402  the same

# Worker threads parse large texts. While one runs, the event loop waits up to one switch interval (default: 5 ms).
sys.setswitchinterval(0.001)

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
for blueprint in BLUEPRINTS:
    app.register_functions(blueprint)
# Without this call, the first garbage collection would examine all imported objects.
exempt_objects_from_garbage_collection()
gc.enable()
