"""The timer that signs checkpoints of chains that grew."""

import azure.functions as func

from shared.logs import fields, logger
from shared.wiring import PROVENANCE, services

blueprint = func.Blueprint()
_LOG = logger("checkpoints")


@blueprint.function_name("checkpoints")
@blueprint.timer_trigger(arg_name="timer", schedule="%CHECKPOINT_SCHEDULE%", use_monitor=False)
async def checkpoints(timer: func.TimerRequest) -> None:  # noqa: ARG001  the worker gives it by name
    """Sign a checkpoint of every chain that grew since its last one."""
    if not await services().has_feature(PROVENANCE):
        return
    made = await services().checkpoints.make_all()
    if made:
        _LOG.info("checkpoints signed", extra=fields(count=made))
