"""Models of simulated sources: one class for each kind of variable.

They are a module of their own because the simulation and its checks need no other model.
"""

from typing import Annotated, Literal

from pydantic import Field

from shared.catalog.fields import Model, Name


class VariableBase(Model):
    """Fields of every simulated variable."""

    name: Name


class ConstantVariable(VariableBase):
    """Constant value."""

    kind: Literal["constant"]
    value: float | str | bool


class SineVariable(VariableBase):
    """Sine between min and max."""

    kind: Literal["sine"]
    min: float
    max: float
    period_sec: float = Field(alias="periodSec", gt=0)
    noise: float = Field(0.0, ge=0, description="Standard deviation of added normal noise.")


class RampVariable(VariableBase):
    """Sawtooth from min to max."""

    kind: Literal["ramp"]
    min: float
    max: float
    period_sec: float = Field(alias="periodSec", gt=0)
    noise: float = Field(0.0, ge=0)


class SquareVariable(VariableBase):
    """Square wave: min for the first part of the period, then max."""

    kind: Literal["square"]
    min: float
    max: float
    period_sec: float = Field(alias="periodSec", gt=0)
    duty: float = Field(0.5, gt=0, lt=1, description="Share of the period at max.")
    noise: float = Field(0.0, ge=0)


class RandomWalkVariable(VariableBase):
    """Random walk of normal steps, reflected at min and max, restarted each UTC day."""

    kind: Literal["random-walk"]
    min: float
    max: float
    step: float = Field(gt=0, description="Standard deviation of a step.")
    start: float | None = None


class UniformVariable(VariableBase):
    """Independent values between min and max."""

    kind: Literal["uniform"]
    min: float
    max: float


class NormalVariable(VariableBase):
    """Independent normal values."""

    kind: Literal["normal"]
    mean: float
    stdev: float = Field(ge=0)


class ChoiceVariable(VariableBase):
    """One of several values, by weight."""

    kind: Literal["choice"]
    values: tuple[float | str | bool, ...] = Field(min_length=1)
    weights: tuple[float, ...] | None = None


class CounterVariable(VariableBase):
    """Number that grows by a step with each message; it restarts before it reaches its wrap, or else each UTC day."""

    kind: Literal["counter"]
    start: int = 0
    step: int = 1
    wrap: int | None = Field(None, description="The counter restarts before this value; without it, each UTC day.")


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
    seed: int = 0
    variables: tuple[Variable, ...] = Field(min_length=1)
