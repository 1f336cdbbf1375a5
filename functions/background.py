"""The one timer of the app. It starts every background job that is due.

On Flex Consumption each timer function scales by itself, so several short timers could keep several instances busy.
"""

import azure.functions as func

from shared.wiring import services

blueprint = func.Blueprint()


@blueprint.function_name("background")
@blueprint.timer_trigger(arg_name="timer", schedule="%BACKGROUND_SCHEDULE%", use_monitor=False)
async def background(timer: func.TimerRequest) -> None:  # noqa: ARG001  the worker passes it by name
    """Start the background jobs that are due."""
    await services().background.tick()
