"""``top-nested`` and ``top-hitters``: the values that weigh most."""

import dataclasses
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql.translate import naming

from emulators.kusto.errors import unsupported
from emulators.kusto.extensions.library import reader, writer
from emulators.kusto.extensions.pipeline import Substitute, add_operator
from emulators.kusto.extensions.ranks import ranked
from emulators.kusto.extensions.serialized import Serializing, Unserializing
from emulators.kusto.extensions.sql import render
from emulators.kusto.extensions.tabular import bound_value, row_limit
from emulators.kusto.extensions.tree import children, kind_of, position
from emulators.kusto.extensions.window_plan import free_prefix

SUPPORTED: tuple[str, ...] = ("top-nested (several levels, with others, asc)", "top-hitters (by)")

macros: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Level:
    """One clause of ``top-nested``.

    Attributes:
        of: the value.
        by: the aggregate that it is ranked by.
        count: how many values stay; None for all.
        others: what the row of all other records is called; None for no such row.
        ascending: whether the lowest rank first.
    """

    of: ir.NamedExpr
    by: ir.NamedExpr
    count: ir.Expr | None
    others: ir.Expr | None
    ascending: bool


@dataclasses.dataclass(frozen=True)
class TopNested(Unserializing):
    """A tree of the values that weigh most, each level within the one before."""

    levels: tuple[Level, ...]

    def render(self, prev: str, cols: list[str]) -> str:
        """Return a row for each path through the tree: value and weight of every level."""
        return _Tree(self, prev, cols).sql()

    def columns(self, cols: list[str]) -> list[str]:
        """Return value and weight of each level, by name."""
        del cols
        namer = naming.Namer()
        names = []
        for level in self.levels:
            value = namer.name(level.of)
            names += [value, namer.take(level.by.name or f"aggregated_{value}")]
        return names

    def substituted(self, substitute: Substitute) -> "TopNested":
        """Return the operator with its expressions replaced."""
        return TopNested(tuple(_substituted(level, substitute) for level in self.levels))


def _substituted(level: Level, substitute: Substitute) -> Level:
    return dataclasses.replace(
        level,
        of=dataclasses.replace(level.of, expr=substitute(level.of.expr)),
        by=dataclasses.replace(level.by, expr=substitute(level.by.expr)),
        count=None if level.count is None else bound_value(substitute(level.count)),
        others=None if level.others is None else bound_value(substitute(level.others)),
    )


class _Tree:
    """Writes the levels, one after the other.

    Each level takes the records that are left, gives every record its value there, and counts the records of a parent
    that did not make it as its "others": such a record is beyond ranking on the levels below.
    """

    def __init__(self, operator: TopNested, prev: str, cols: list[str]) -> None:
        self._levels = operator.levels
        self._names = [translate.quote_ident(name) for name in operator.columns(cols)]
        self._prev = prev
        self._p = free_prefix(cols)
        weighed = writer.referenced_columns(tuple(level.by.expr for level in operator.levels))
        self._read = [name for name in cols if name in weighed]
        self._ctes: list[str] = []

    def sql(self) -> str:
        p = self._p
        values = ", ".join(f"{render(level.of.expr)} AS {p}k{i}" for i, level in enumerate(self._levels))
        # The levels read the records repeatedly, so these are kept: without the columns that nothing looks at.
        read = [*map(translate.quote_ident, self._read), values, f"false AS {p}o"]
        records = self._cte("r", f"SELECT {', '.join(read)} FROM {self._prev}")  # noqa: S608  rendered expressions
        weights = []
        for index, level in enumerate(self._levels):
            top = self._cte(f"t{index}", self._top(index, level, records))
            others = any(each.others is not None for each in self._levels[: index + 1])
            last = index + 1 == len(self._levels) and not others
            if not last:
                records = self._cte(f"b{index}", self._classified(index, level, records, top))
            weights.append(top if last else self._cte(f"w{index}", self._weight(index, level, records)))
        return f"WITH {', '.join(self._ctes)} {self._joined(weights)}"

    def _cte(self, name: str, sql: str) -> str:
        self._ctes.append(f"{self._p}{name} AS ({sql})")
        return f"{self._p}{name}"

    def _keys(self, count: int) -> list[str]:
        return [f"{self._p}k{i}" for i in range(count)]

    def _top(self, index: int, level: Level, records: str) -> str:
        p = self._p
        keys = self._keys(index + 1)
        weight = translate.render_aggregate(level.by)
        limit = ""
        if level.count is not None:
            within = f"PARTITION BY {', '.join(keys[:-1])} " if index else ""
            order = f"{ranked(f'{p}a')} {'ASC NULLS FIRST' if level.ascending else 'DESC NULLS LAST'}"
            limit = f" QUALIFY row_number() OVER ({within}ORDER BY {order}) <= {row_limit(level.count)}"
        grouped = f"SELECT {', '.join(keys)}, {weight} AS {p}a FROM {records} WHERE NOT {p}o GROUP BY {', '.join(keys)}"  # noqa: S608
        return f"SELECT *, false AS {p}o FROM ({grouped}){limit}"  # noqa: S608  generated names, rendered expressions

    def _classified(self, index: int, level: Level, records: str, top: str) -> str:
        p, key = self._p, f"{self._p}k{index}"
        same = " AND ".join(f"b.{each} IS NOT DISTINCT FROM t.{each}" for each in self._keys(index + 1))
        if all(each.others is None for each in self._levels[: index + 1]):
            return f"SELECT b.* FROM {records} b SEMI JOIN {top} t ON {same}"  # noqa: S608  generated names
        if level.others is None:
            named = f"b.* REPLACE (CASE WHEN b.{p}o THEN NULL ELSE b.{key} END AS {key})"
            return (
                f"SELECT {named} FROM {records} b LEFT JOIN {top} t ON NOT b.{p}o AND {same} WHERE b.{p}o OR NOT t.{p}o"  # noqa: S608
            )
        other = f"b.{p}o OR t.{p}o IS NULL"
        named = f"CASE WHEN {other} THEN {render(level.others)} ELSE b.{key} END AS {key}"
        return (
            f"SELECT b.* REPLACE ({named}, {other} AS {p}o) FROM {records} b LEFT JOIN {top} t ON NOT b.{p}o AND {same}"  # noqa: S608
        )

    def _weight(self, index: int, level: Level, records: str) -> str:
        p, keys = self._p, ", ".join(self._keys(index + 1))
        weight = translate.render_aggregate(level.by)
        if level.others is None:
            weight = f"CASE WHEN NOT {p}o THEN {weight} END"
        return f"SELECT {keys}, {weight} AS {p}a, {p}o FROM {records} GROUP BY {keys}, {p}o"  # noqa: S608

    def _joined(self, weights: list[str]) -> str:
        p, last = self._p, weights[-1]
        sql = last
        for index, weight in enumerate(weights[:-1]):
            keys = [f"{last}.{each} IS NOT DISTINCT FROM {weight}.{each}" for each in self._keys(index + 1)]
            # A path that became "others" further down is an ordinary one here, unless it was beyond ranking already.
            others = f"({last}.{p}o OR NOT {weight}.{p}o)"
            sql += f" JOIN {weight} ON {' AND '.join([*keys, others])}"
        chosen = []
        for index, weight in enumerate(weights):
            chosen += [
                f"{last}.{p}k{index} AS {self._names[2 * index]}",
                f"{weight}.{p}a AS {self._names[2 * index + 1]}",
            ]
        return f"SELECT {', '.join(chosen)} FROM {sql}"  # noqa: S608  generated and quoted names


@dataclasses.dataclass(frozen=True)
class TopHitters(Serializing):
    """The most frequent values, or those of the largest sum."""

    count: ir.Expr
    of: ir.NamedExpr
    by: ir.NamedExpr | None

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the values and their counts or sums, the largest first."""
        value, weight = (translate.quote_ident(name) for name in self.columns(cols))
        aggregate = "count(*)" if self.by is None else translate.render_aggregate(self._sum(self.by))
        return (
            f"SELECT {render(self.of.expr)} AS {value}, {aggregate} AS {weight} FROM {prev} GROUP BY ALL "  # noqa: S608
            f"ORDER BY {weight} DESC NULLS LAST LIMIT {row_limit(self.count)}"
        )

    def columns(self, cols: list[str]) -> list[str]:
        """Return the value's name and that of its weight."""
        del cols
        value = naming.Namer().name(self.of)
        weight = "count" if self.by is None else "sum"
        summed = value if self.by is None else self.by.name or naming.expression_name(self.by.expr) or ""
        return [value, f"approximate_{weight}_{summed}"]

    def substituted(self, substitute: Substitute) -> "TopHitters":
        """Return the operator with its expressions replaced."""
        by = self.by and dataclasses.replace(self.by, expr=substitute(self.by.expr))
        of = dataclasses.replace(self.of, expr=substitute(self.of.expr))
        return TopHitters(bound_value(substitute(self.count)), of, by)

    @staticmethod
    def _sum(by: ir.NamedExpr) -> ir.NamedExpr:
        return ir.NamedExpr(ir.FunctionCall("sum", (by.expr,)))


def install() -> None:
    """Teach the translator the operators."""
    add_operator("TopNestedOperator", _top_nested)
    add_operator("TopNestedOperatorPart", lambda node: TopNested((_level(node),)))
    add_operator("TopHittersOperator", _top_hitters)


def _top_nested(node: Any) -> ir.Operator:
    return TopNested(tuple(_level(child) for child in children(node)))


def _level(node: Any) -> Level:
    *before, by = children(node)
    others = [children(each)[-1] for each in before if kind_of(each) == "TopNestedOperatorWithOthersClause"]
    before = [each for each in before if kind_of(each) != "TopNestedOperatorWithOthersClause"]
    aggregate, ascending = _ordered(by)
    count = reader.lower_expr(before[0]) if len(before) > 1 else None
    return Level(
        reader.lower_named(before[-1]), aggregate, count, reader.lower_expr(others[0]) if others else None, ascending
    )


def _ordered(node: Any) -> tuple[ir.NamedExpr, bool]:
    parts = children(node) if kind_of(node) == "OrderedExpression" else [node]
    text = parts[-1].getText() if len(parts) > 1 else ""
    if text not in ("", "asc", "desc"):
        raise unsupported(f"top-nested ordering {text[:50]}", position=position(node))
    return reader.lower_named(parts[0]), text == "asc"


def _top_hitters(node: Any) -> ir.Operator:
    count, of, *by = children(node)
    summed = _ordered(children(by[0])[-1])[0] if by else None
    return TopHitters(reader.lower_expr(count), reader.lower_named(of), summed)
