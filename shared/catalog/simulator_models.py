"""Models of simulated telemetry sources: one class for each kind of variable.

This module is separate because the simulation and its checks need no other model.
"""

from typing import Annotated, Literal

from pydantic import Field

from shared.catalog.fields import Model, Name


class VariableBase(Model):
    """Base class of the models of simulated variables."""

    name: Name


class ConstantVariable(VariableBase):
    """Simulated variable with a constant value."""

    kind: Literal["constant"]
    value: float | str | bool


class SineVariable(VariableBase):
    """Simulated variable that follows a sine between min and max."""

    kind: Literal["sine"]
    min: float
    max: float
    period_sec: float = Field(alias="periodSec", gt=0)
    noise: float = Field(0.0, ge=0, description="Standard deviation of added normal noise.")


class RampVariable(VariableBase):
    """Simulated variable that rises from min to max in each period (sawtooth)."""

    kind: Literal["ramp"]
    min: float
    max: float
    period_sec: float = Field(alias="periodSec", gt=0)
    noise: float = Field(0.0, ge=0)


class SquareVariable(VariableBase):
    """Simulated square wave: min for the first part of each period, then max."""

    kind: Literal["square"]
    min: float
    max: float
    period_sec: float = Field(alias="periodSec", gt=0)
    duty: float = Field(0.5, gt=0, lt=1, description="Share of the period at max.")
    noise: float = Field(0.0, ge=0)


class RandomWalkVariable(VariableBase):
    """Simulated random walk with normally distributed steps, reflected at min and max, restarted each UTC day."""

    kind: Literal["random-walk"]
    min: float
    max: float
    step: float = Field(gt=0, description="Standard deviation of a step.")
    start: float | None = None


class UniformVariable(VariableBase):
    """Simulated variable with independent, uniformly distributed values between min and max."""

    kind: Literal["uniform"]
    min: float
    max: float


class NormalVariable(VariableBase):
    """Simulated variable with independent, normally distributed values."""

    kind: Literal["normal"]
    mean: float
    stdev: float = Field(ge=0)


class ChoiceVariable(VariableBase):
    """Simulated variable that takes one of several values, chosen at random by weight."""

    kind: Literal["choice"]
    values: tuple[float | str | bool, ...] = Field(min_length=1)
    weights: tuple[float, ...] | None = None


WholeNumber = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""Whole number of 64 bits."""


class CounterVariable(VariableBase):
    """Simulated counter that grows by a step with each message.

    The counter restarts before it reaches ``wrap`` or, without ``wrap``, each UTC day.
    """

    kind: Literal["counter"]
    start: WholeNumber = 0
    step: WholeNumber = 1
    wrap: WholeNumber | None = Field(
        None, description="The counter restarts before this value; without it, each UTC day."
    )


Variable = Annotated[
    ConstantVariable
    | SineVariable
    | RampVariable
    | SquareVariable
    | RandomWalkVariable
    | UniformVariable
    | NormalVariable
    | ChoiceVariable
    | CounterVariable,
    Field(discriminator="kind"),
]


class Simulator(Model):
    """Simulated source; the same seed gives the same values."""

    interval_ms: int = Field(1000, alias="intervalMs", ge=100)
    devices: int = Field(1, ge=1, le=1000)
    seed: WholeNumber = 0
    variables: tuple[Variable, ...] = Field(min_length=1)
