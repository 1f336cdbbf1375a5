"""What the steps of ``scan`` are made of."""

import dataclasses

from duckdb_kql import ir


@dataclasses.dataclass(frozen=True)
class Declared:
    """A column of ``declare``."""

    name: str
    sql_type: str
    default: ir.Expr | None


@dataclasses.dataclass(frozen=True)
class Step:
    """One step: when a row matches it, and what the row then assigns."""

    name: str
    shown: bool
    condition: ir.Expr
    assignments: tuple[ir.NamedExpr, ...]
