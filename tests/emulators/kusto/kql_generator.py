"""Generator of random KQL queries with fixed seeds, and of slightly changed versions of these queries.

Most of the changed queries are invalid, so that half of all queries are.
"""

import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

TABLE = {
    "B": "bool", "I": "int", "L": "long", "R": "real", "S": "string", "S2": "string", "D": "datetime", "W": "timespan",
    "J": "dynamic", "G": "guid", "L2": "long",
}  # fmt: skip
"""Columns of the table T, with their types."""
_LITERALS = {
    "bool": ("true", "false"),
    "int": ("int(3)", "int(-1)"),
    "long": ("1", "42", "0"),
    "real": ("1.5", "0.25", "1e3"),
    "string": ('"a"', "'b c'", '"10.1.2.3"'),
    "datetime": ("datetime(2024-01-02)", "now()"),
    "timespan": ("1h", "2d", "timespan(0.01:02:03)"),
    "dynamic": ("dynamic([1, 2, 3])", 'dynamic({"a": 1})'),
    "guid": ("guid(74be27de-1e4e-49d9-b579-fe0b331d3642)",),
    "decimal": ("decimal(1.5)",),
}
_KINDS: Mapping[str, tuple[str, ...]] = {
    "any": tuple(_LITERALS), "scalar": ("string", "long", "real", "datetime", "bool"), "integer": ("long", "int"),
    "real_or_decimal": ("real",), "string_or_dynamic": ("string", "dynamic"), "string_or_array": ("string",),
    "integer_or_array": ("long",), "array": ("dynamic",), "bag": ("dynamic",), "number": ("long", "real", "int"),
    "number_or_bool": ("long", "bool"), "summable": ("long", "real", "timespan"),
    "orderable": ("long", "real", "datetime", "string"), "not_real_or_bool": ("long", "string"),
    "not_dynamic": ("string", "long"), "not_bool": ("string", "long"),
}  # fmt: skip
_COMMON = {
    "common_scalar": ("long", "string", "real", "datetime"), "common_number": ("long", "real"),
    "common_summable": ("long", "real"), "common_orderable": ("long", "real", "datetime"),
    "common_scalar_or_dynamic": ("long", "string", "dynamic"),
}  # fmt: skip
_CONSTANTS = {
    ("extract", "regex"): "@'(\\w+)'", ("extract_all", "regex"): "@'(\\w+)'",
    ("format_datetime", "format"): "'yyyy-MM'",
    ("format_timespan", "format"): "'hh:mm'", ("extract_json", "jsonPath"): "'$.a'",
    ("datetime_diff", "period"): "'day'",
    ("datetime_add", "period"): "'day'", ("parse_command_line", "parser"): "'windows'",
}  # fmt: skip
_UNSHARED = [name for name in TABLE if name not in ("G", "W")]
"""Columns that remain after a `union` with other types."""
_TWICE = 3
"""One query of so many is changed twice; five sixths of the changed queries are invalid."""
_TOKEN = re.compile(r"""[hH@]*"[^"\n]*"|[hH@]*'[^'\n]*'|\w+|[^\w\s]""")
_INFIX = ("==", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "has", "contains", "startswith", "=~", "and", "or")


class QueryGenerator:
    """Generator of random KQL queries over the table T.

    Args:
        seed: start of the random numbers.
        functions: functions of the language service that occur in the queries.
        aggregates: aggregates that occur in the queries.
    """

    def __init__(
        self, seed: int, functions: Sequence[Mapping[str, Any]], aggregates: Sequence[Mapping[str, Any]]
    ) -> None:
        self._random = random.Random(seed)
        self._functions = list(functions)
        self._aggregates = list(aggregates)

    def generate(self, count: int) -> Iterator[str]:
        """Yield random queries, each followed by one or two changed versions; each function occurs equally often."""
        yield from itertools.islice(self._generate_all(), count)

    def _generate_all(self) -> Iterator[str]:
        for index in itertools.count():
            query = self._build_query(index)
            yield query
            for _ in range(1 if index % _TWICE else 2):
                yield self._change_query(query)

    def _build_query(self, index: int) -> str:
        names = len(self._functions) + len(self._aggregates)
        chosen = index % (names + 10)
        if chosen < len(self._functions):
            return self._build_call_query(self._functions[chosen])
        if chosen < names:
            return self._build_summary(self._aggregates[chosen - len(self._functions)])
        return self._build_operators()

    def _build_call_query(self, function: Mapping[str, Any]) -> str:
        call = self._build_call(function, depth=1)
        form = self._random.choice(("T | extend x = {}", "T | project x = {}", "T | project {}, L", "T | extend {}"))
        return form.format(call)

    def _build_summary(self, aggregate: Mapping[str, Any]) -> str:
        call = self._build_call(aggregate, depth=0)
        form = self._random.choice(
            (
                "T | summarize x = {}",
                "T | summarize {} by S",
                "T | summarize {}",
                "T | summarize x = {} by bin(D, 1h), B",
            )
        )
        return form.format(call)

    def _build_operators(self) -> str:
        number = self._random.randint(1, 3)
        return " | ".join(["T", *(self._build_operator() for _ in range(number))])

    def _build_operator(self) -> str:
        pick, expression = self._random.choice, self._build_expression
        forms = (
            lambda: f"where {self._build_predicate()}",
            lambda: f"extend S = {expression('string', 1)}, L = {expression('long', 1)}",
            lambda: f"extend J = {expression('dynamic', 1)}",
            lambda: f"take {self._random.randint(0, 9)}",
            lambda: f"sort by {pick(['L', 'S', 'D desc', 'R asc nulls last'])}",
            lambda: f"top 3 by {pick(['L', 'R', 'D'])}",
            lambda: "where isnotempty(S) and B",
            lambda: f"union (T | project {pick(['L2', 'L2, S2', 'G = S', 'W = L'])}) | project {', '.join(_UNSHARED)}",
            lambda: "join kind=inner (T | project L, Z = S) on L | project-away Z, L1",
            lambda: f"mv-expand J{pick([' to typeof(long)', ''])} | extend J = dynamic([1])",
            lambda: f"parse S with * 'a' {pick(['q', 'q:long', 'q:string'])} 'b' * | project-away q",
            lambda: "serialize | extend L2 = row_number()",
        )
        return pick(forms)()

    def _build_predicate(self) -> str:
        kind = self._random.choice(("long", "real", "string", "datetime", "timespan", "bool"))
        left, right = self._build_expression(kind, 1), self._build_expression(kind, 0)
        if kind == "string":
            return f"{left} {self._random.choice(('==', '!=', 'has', 'contains', 'startswith', '=~', '!has'))} {right}"
        if kind == "bool":
            return left
        return f"{left} {self._random.choice(('==', '!=', '<', '>', '<=', '>='))} {right}"

    def _build_expression(self, kind: str, depth: int) -> str:
        if depth > 0 and self._random.random() < 0.5:
            producers = [each for each in self._functions if any(one["returns"] == kind for one in each["signatures"])]
            if producers:
                return self._build_call(self._random.choice(producers), depth - 1, kind)
        columns = [name for name, each in TABLE.items() if each == kind]
        if columns and self._random.random() < 0.6:
            return self._random.choice(columns)
        return self._random.choice(_LITERALS.get(kind, ("1",)))

    def _build_call(self, function: Mapping[str, Any], depth: int, kind: str = "") -> str:
        signatures = [each for each in function["signatures"] if not kind or each["returns"] == kind]
        signature = self._random.choice(signatures)
        arguments: list[str] = []
        common: dict[str, str] = {}
        for parameter in signature["parameters"]:
            least, most = parameter.get("least", 1), parameter.get("most", 1)
            number = self._random.randint(least, min(most, least + 1))
            if number == 0:
                break
            arguments += [self._build_argument(function["name"], parameter, common, depth) for _ in range(number)]
        return f"{function['name']}({', '.join(arguments)})"

    def _build_argument(self, function: str, parameter: Mapping[str, Any], common: dict[str, str], depth: int) -> str:
        constant = _CONSTANTS.get((function, parameter["name"]))
        if constant is not None:
            return constant
        if parameter.get("values"):
            return f"'{self._random.choice(parameter['values'])}'"
        types = parameter["types"]
        if isinstance(types, str) and types in _COMMON:
            kind = common.setdefault(types, self._random.choice(_COMMON[types]))
        elif isinstance(types, str):
            kind = self._random.choice(_KINDS.get(types, ("long",)))
        else:
            kind = self._random.choice(types)
        if parameter.get("constant"):
            return self._random.choice(_LITERALS.get(kind, ("1",)))
        return self._build_expression(kind, depth)

    def _change_query(self, query: str) -> str:
        tokens = list(_TOKEN.finditer(query))
        place = self._random.randrange(2, len(tokens)) if len(tokens) > 2 else 0
        token = tokens[place]
        before, after = query[: token.start()], query[token.end() :]
        text = token.group()
        return self._random.choice(
            (
                lambda: f"{before}{after}",
                lambda: f"{before}{text} {text}{after}",
                lambda: f"{before}{self._random.choice(_INFIX)}{after}",
                lambda: self._replace_name(query),
                lambda: self._replace_name(query),
                lambda: self._replace_literal(query),
                lambda: self._add_argument(query),
                lambda: re.sub(r"\b(\w{3,})\(", r"\1x(", query, count=1),
            )
        )()

    def _replace_name(self, query: str) -> str:
        places = [found for found in re.finditer(r"\b[A-Z]\d?\b", query) if found.start() > 1]
        if not places:
            return f"{query} | where Nope == 1"
        found = self._random.choice(places)
        other = self._random.choice([*TABLE, "Nope"])
        return f"{query[: found.start()]}{other}{query[found.end() :]}"

    def _replace_literal(self, query: str) -> str:
        places = list(re.finditer(r"""(?<![\w.])\d+(?:\.\d+)?\b|"[^"]*"|'[^']*'""", query))
        if not places:
            return f"{query} | where L == 'x'"
        found = self._random.choice(places)
        other = self._random.choice([one for each in _LITERALS.values() for one in each])
        return f"{query[: found.start()]}{other}{query[found.end() :]}"

    def _add_argument(self, query: str) -> str:
        places = [found.start() for found in re.finditer(r"\)", query)]
        if not places:
            return f"{query} | take 1, 2"
        place = self._random.choice(places)
        comma = "" if query[place - 1] == "(" else ", "
        return f"{query[:place]}{comma}{self._random.choice(['1', 'S', 'J', 'D'])}{query[place:]}"
