"""Simulated sources: each kind of variable with its own fields."""

from typing import Annotated, Literal

from pydantic import Field

from shared.catalog.fields import Model, Name


class VariableBase(Model):
    """What every simulated variable has."""

    name: Name


class ConstantVariable(VariableBase):
    """Always the same value."""

    kind: Literal["constant"]
    value: float | str | bool


class SineVariable(VariableBase):
    """A sine between min and max."""

    kind: Literal["sine"]
    min: float
    max: float
    period_sec: float = Field(alias="periodSec", gt=0)
    noise: float = Field(0.0, ge=0, description="Standard deviation of added normal noise.")


class RampVariable(VariableBase):
    """A saw tooth from min to max."""

    kind: Literal["ramp"]
    min: float
    max: float
    period_sec: float = Field(alias="periodSec", gt=0)
    noise: float = Field(0.0, ge=0)


class SquareVariable(VariableBase):
    """Low for a part of the period, then high."""

    kind: Literal["square"]
    min: float
    max: float
    period_sec: float = Field(alias="periodSec", gt=0)
    duty: float = Field(0.5, gt=0, lt=1, description="Share of the period at max.")
    noise: float = Field(0.0, ge=0)


class RandomWalkVariable(VariableBase):
    """A walk of normal steps, reflected at min and max, begun anew each UTC day."""

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
    """A number that grows by a step each message, and starts anew before it reaches its wrap, else each UTC day."""

    kind: Literal["counter"]
    start: int = 0
    step: int = 1
    wrap: int | None = Field(None, description="Never reached: the counter starts anew before. Else each UTC day.")


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
    """A simulated source; the same seed gives the same values."""

    interval_ms: int = Field(1000, alias="intervalMs", ge=100)
    devices: int = Field(1, ge=1, le=1000)
    seed: int = 0
    variables: tuple[Variable, ...] = Field(min_length=1)
