"""The timer that lets simulators send what is due."""

import azure.functions as func

from shared.timestamps import now
from shared.wiring import services

blueprint = func.Blueprint()


@blueprint.function_name("simulators")
@blueprint.timer_trigger(arg_name="timer", schedule="%SIMULATOR_SCHEDULE%", use_monitor=False)
async def simulators(timer: func.TimerRequest) -> None:  # noqa: ARG001  the worker gives it by name
    """Send the simulated telemetry that is due."""
    await services().simulators.run(now())
