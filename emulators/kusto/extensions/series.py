"""KQL functions over series that return a series: arithmetic, filling of gaps, and filters.

A series is a dynamic value that contains an array of numbers. DuckDB macros convert a series to a list and back, and
compute most functions. Python functions compute the others; `SeriesCall` describes a KQL function of this kind.

Each macro uses each parameter only once: it binds the parameter through a list with one element. DuckDB inserts the
argument wherever a macro uses the parameter, so that repeated use would make the SQL of nested calls grow
exponentially. The list also prevents name collisions between an argument and the macro.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.multi_results import OutputExpressionBuilder, SeriesOutput, add_multi_result_function
from emulators.kusto.extensions.registry import add_custom_function, add_template_function
from emulators.kusto.extensions.sql import Sql, quote_text, render_expression
from emulators.kusto.series_functions import SeriesFunction

_NUMBERS = "('DOUBLE', 'BIGINT', 'UBIGINT')"


def _render_contains_any(text: Sql, *substrings: str) -> Sql:
    """Return SQL that tests whether a text contains any of several substrings; faster than a regular expression."""
    return "(" + " OR ".join(f"contains({text}, '{mark}')" for mark in substrings) + ")"


_VALUES_MACROS: tuple[str, ...] = (
    # A number in a dynamic; non-finite numbers are represented by their names.
    f"""CREATE OR REPLACE MACRO kql_number(value) AS list_transform([TRY_CAST(value AS JSON)], lambda _v: CASE
        WHEN json_type(_v) IN {_NUMBERS} THEN CAST(_v AS DOUBLE)
        WHEN CAST(_v AS VARCHAR) IN ('"NaN"', '"Infinity"', '"-Infinity"') THEN CAST(_v ->> '$' AS DOUBLE) END)[1]""",
    # The elements of an array, null for other elements than numbers; null for other values than arrays. DuckDB would
    # convert a text or a bool to a number, so an array that contains one is read element by element.
    f"""CREATE OR REPLACE MACRO kql_numbers(series) AS list_transform([TRY_CAST(series AS JSON)], lambda _j:
        CASE WHEN NOT {_render_contains_any("CAST(_j AS VARCHAR)", '"', "t", "f")} THEN TRY_CAST(_j AS DOUBLE[])
        WHEN json_type(_j) = 'ARRAY' THEN list_transform(CAST(_j AS JSON[]), lambda _e: kql_number(_e)) END)[1]""",
    # True if a number, or every number of an array, is an integer.
    f"""CREATE OR REPLACE MACRO kql_whole(series) AS list_transform([CAST(TRY_CAST(series AS JSON) AS VARCHAR)],
        lambda _t: NOT {_render_contains_any("_t", ".", "e", "E", "N", "I")})[1]""",
    # Reals as a dynamic; non-finite ones become their names.
    f"""CREATE OR REPLACE MACRO kql_series(numbers) AS list_transform([to_json(numbers)], lambda _t:
        CASE WHEN {_render_contains_any("CAST(_t AS VARCHAR)", "N", "I")} THEN
        CAST(regexp_replace(CAST(_t AS VARCHAR), '-?(NaN|Infinity)', '"\\0"', 'g') AS JSON) ELSE _t END)[1]""",
    # Numbers as integers if the input was integers.
    """CREATE OR REPLACE MACRO kql_same_kind(numbers, whole) AS list_transform(
        [struct_pack(n := numbers, w := whole)], lambda _k: CASE
        WHEN _k.w THEN to_json(CAST(_k.n AS BIGINT[])) ELSE kql_series(_k.n) END)[1]""",
    # Two operands of an element-wise function, and a flag for integers; a number is repeated to the array's length.
    """CREATE OR REPLACE MACRO kql_operands(one, other) AS list_transform(list_transform(
        [struct_pack(one := TRY_CAST(one AS JSON), other := TRY_CAST(other AS JSON))],
        lambda _a: struct_pack(a := kql_numbers(_a.one), b := kql_numbers(_a.other), x := kql_number(_a.one),
            y := kql_number(_a.other), w := kql_whole(_a.one) AND kql_whole(_a.other))),
        lambda _o: struct_pack(
            a := CASE WHEN _o.x IS NULL THEN _o.a ELSE list_resize([_o.x], len(_o.b), _o.x) END,
            b := CASE WHEN _o.y IS NULL THEN _o.b ELSE list_resize([_o.y], len(_o.a), _o.y) END, w := _o.w))[1]""",
)


_ARITHMETIC: Mapping[str, str] = {"series_add": "+", "series_subtract": "-", "series_multiply": "*"}
_COMPARISONS: Mapping[str, str] = {
    "series_equals": "=",
    "series_not_equals": "<>",
    "series_greater": ">",
    "series_greater_equals": ">=",
    "series_less": "<",
    "series_less_equals": "<=",
}
_UNARY: Mapping[str, str] = {
    "series_exp": "exp(_e)",
    "series_log": "ln(_e)",
    "series_sin": "sin(_e)",
    "series_cos": "cos(_e)",
    "series_tan": "tan(_e)",
    "series_asin": "asin(_e)",
    "series_acos": "acos(_e)",
    "series_atan": "atan(_e)",
    "series_ceiling": "ceil(_e)",
    "series_floor": "floor(_e)",
}
_KIND_KEEPING: Mapping[str, str] = {"series_abs": "abs(_e)", "series_sign": "CAST(sign(_e) AS DOUBLE)"}
_EXACT = "9007199254740992"
"""2 to the power of 53: a double represents every smaller integer exactly, larger integers can be rounded."""


def _render_expression_for_each_pair_of_elements(element_expression: Sql) -> Sql:
    """Return SQL that evaluates an expression such as ``_e[1] + _e[2]`` for each position of two series.

    ``_e[1]`` is the element of the first series at this position, ``_e[2]`` the element of the second series.
    """
    return f"list_transform(list_zip(_p.a, _p.b), lambda _e: {element_expression})"


def _build_macro_of_two_series(macro_name: str, result: Sql) -> Sql:
    return f"""CREATE OR REPLACE MACRO {macro_name}(one, other) AS list_transform([kql_operands(one, other)],
        lambda _p: CASE WHEN _p.a IS NULL OR _p.b IS NULL THEN NULL ELSE {result} END)[1]"""


def _build_arithmetic_macro(function_name: str, sql_operator: str) -> Sql:
    extremes = ", ".join(f"list_max({part}), -list_min({part})" for part in ("_r.a", "_r.b", "_r.n"))
    numbers = _render_expression_for_each_pair_of_elements(f"_e[1] {sql_operator} _e[2]")
    return _build_macro_of_two_series(
        f"kql_{function_name}",
        f"""list_transform([struct_pack(n := {numbers}, a := _p.a, b := _p.b, w := _p.w)],
        lambda _r: CASE WHEN NOT _r.w THEN kql_series(_r.n) WHEN greatest({extremes}) >= {_EXACT}
        THEN error('{function_name}() of integers beyond 2^53 is not supported')
        ELSE to_json(CAST(_r.n AS BIGINT[])) END)[1]""",
    )


def _build_elementwise_macro(function_name: str, element: Sql) -> Sql:
    return f"""CREATE OR REPLACE MACRO kql_{function_name}(series) AS
        kql_series(list_transform(kql_numbers(series), lambda _e: {element}))"""


def _build_type_preserving_elementwise_macro(function_name: str, element: Sql) -> Sql:
    return f"""CREATE OR REPLACE MACRO kql_{function_name}(series) AS list_transform(
        [TRY_CAST(series AS JSON)], lambda _s:
        kql_same_kind(list_transform(kql_numbers(_s), lambda _e: {element}), kql_whole(_s)))[1]"""


_ELEMENTWISE_MACROS: tuple[str, ...] = (
    *(_build_arithmetic_macro(name, operator) for name, operator in _ARITHMETIC.items()),
    _build_macro_of_two_series(
        "kql_series_divide", f"kql_series({_render_expression_for_each_pair_of_elements('_e[1] / _e[2]')})"
    ),
    _build_macro_of_two_series(
        "kql_series_pow", f"kql_series({_render_expression_for_each_pair_of_elements('pow(_e[1], _e[2])')})"
    ),
    *(
        _build_macro_of_two_series(
            f"kql_{name}", f"to_json({_render_expression_for_each_pair_of_elements(f'_e[1] {operator} _e[2]')})"
        )
        for name, operator in _COMPARISONS.items()
    ),
    *(_build_elementwise_macro(name, element) for name, element in _UNARY.items()),
    *(_build_type_preserving_elementwise_macro(name, element) for name, element in _KIND_KEEPING.items()),
    _build_macro_of_two_series(
        "kql_series_dot_product", "list_sum(" + _render_expression_for_each_pair_of_elements("_e[1] * _e[2]") + ")"
    ),
    """CREATE OR REPLACE MACRO kql_series_magnitude(series) AS
        sqrt(list_sum(list_transform(kql_numbers(series), lambda _e: _e * _e)))""",
    # A pair with an element that is missing in one of the series is ignored; a magnitude may be given.
    """CREATE OR REPLACE MACRO kql_series_cosine_similarity(one, other, m, n) AS list_transform(list_transform(
        [struct_pack(p := kql_operands(one, other), m := m, n := n)], lambda _p: struct_pack(m := _p.m, n := _p.n,
            z := list_filter(list_zip(_p.p.a, _p.p.b), lambda _e: _e[1] + _e[2] IS NOT NULL))),
        lambda _z: list_sum(list_transform(_z.z, lambda _e: _e[1] * _e[2]))
            / (coalesce(_z.m, sqrt(list_sum(list_transform(_z.z, lambda _e: _e[1] * _e[1]))))
            * coalesce(_z.n, sqrt(list_sum(list_transform(_z.z, lambda _e: _e[2] * _e[2]))))))[1]""",
    # The correlation of series that contain a null is null.
    """CREATE OR REPLACE MACRO kql_series_pearson_correlation(one, other) AS list_transform([kql_operands(one, other)],
        lambda _p: CASE WHEN len(_p.a) = len(_p.b) AND len(_p.a) > 0
        AND len(list_filter(_p.a, lambda _e: _e IS NULL)) + len(list_filter(_p.b, lambda _e: _e IS NULL)) = 0
        THEN list_transform([struct_pack(a := _p.a, b := _p.b, m := list_avg(_p.a), n := list_avg(_p.b))],
            lambda _c: list_sum(list_transform(_c.a, lambda _e, _i: (_e - _c.m) * (_c.b[_i] - _c.n)))
                / sqrt(list_sum(list_transform(_c.a, lambda _e: pow(_e - _c.m, 2)))
                * list_sum(list_transform(_c.b, lambda _e: pow(_e - _c.n, 2)))))[1] END)[1]""",
)


def _install_elementwise_functions() -> None:
    """Add arithmetic and comparison of series to the KQL translator library."""
    pairs = (*_ARITHMETIC, *_COMPARISONS, "series_divide", "series_pow", "series_dot_product")
    add_custom_function("series_cosine_similarity", (2, 3, 4), _render_cosine_similarity)
    for name in (*pairs, "series_pearson_correlation"):
        add_template_function(name, f"kql_{name}({{0}}, {{1}})", 2)
    for name in (*_UNARY, *_KIND_KEEPING, "series_magnitude"):
        add_template_function(name, f"kql_{name}({{0}})", 1)
    add_template_function("series_sum", "list_sum(kql_numbers({0}))", 1)
    add_template_function("series_product", "list_product(kql_numbers({0}))", 1)


def _render_cosine_similarity(call: ir.FunctionCall) -> Sql:
    one, other, *magnitudes = (render_expression(arg) for arg in call.args)
    given = [f"CAST({each} AS DOUBLE)" for each in magnitudes] + ["CAST(NULL AS DOUBLE)"] * (2 - len(magnitudes))
    return f"kql_series_cosine_similarity({one}, {other}, {', '.join(given)})"


_KNOWN = "list_filter(range(1, len(_g.x) + 1), lambda _i: NOT _g.m[_i])"
_RUNS = "flatten(list_transform(range(1, len(_f.k) + 1), lambda _r: {run}))"
_ELEMENTS = "CAST(CASE WHEN json_type(_s.j) = 'ARRAY' THEN _s.j END AS JSON[])"


def _build_fill_macro(function_name: str, parameter_list: Sql, parameter_values: Sql, filled: Sql) -> Sql:
    """Return SQL that creates a DuckDB macro, which fills gaps in a series.

    An element is missing if it equals the placeholder; with a null placeholder, nulls are missing. Elements retain
    their original type, so the macro works on JSON values. The macro concatenates the gaps and the known elements,
    which takes linear time.

    Args:
        function_name: name of the macro without ``kql_``.
        parameter_list: names of the macro's parameters after the series and the placeholder, each preceded by a comma,
            such as ``, constant``.
        parameter_values: SQL that gives a short name to the value of each of these parameters, such as
            ``, c := TRY_CAST(constant AS JSON)``.
        filled: SQL of the filled series. It can read:

            - ``_f.x``: elements of the series, as JSON values.
            - ``_f.v``: numeric values of the elements.
            - ``_f.m``: for each element, true if it is missing.
            - ``_f.k``: indexes of the elements that are not missing.
            - ``_f.w``: true for a series of integers.
            - ``_f.s.j`` and ``_f.s.p``: the whole series as JSON, and the placeholder.
            - ``_f.s.c``: in the example above, the value of the parameter ``constant``.
    """
    return f"""CREATE OR REPLACE MACRO kql_{function_name}(series, missing{parameter_list}) AS list_transform(
        list_transform(list_transform([struct_pack(j := TRY_CAST(series AS JSON), p := kql_number(missing)
        {parameter_values})],
        lambda _s: struct_pack(x := {_ELEMENTS}, v := kql_numbers(_s.j), w := kql_whole(_s.j), s := _s)),
        lambda _n: struct_pack(x := _n.x, v := _n.v, w := _n.w, s := _n.s, m := list_transform(_n.v, lambda _v:
            CASE WHEN _n.s.p IS NULL THEN _v IS NULL ELSE _v IS NOT DISTINCT FROM _n.s.p END))),
        lambda _g: list_transform([struct_pack(x := _g.x, v := _g.v, w := _g.w, s := _g.s, m := _g.m, k := {_KNOWN})],
            lambda _f: CASE WHEN _f.x IS NOT NULL THEN {filled} END)[1])[1]"""


_FORWARD = f"""CASE WHEN len(_f.k) = 0 THEN to_json(_f.x) ELSE to_json(_f.x[1:_f.k[1] - 1] || {
    _RUNS.format(
        run='''list_resize(CAST([] AS JSON[]),
        CASE WHEN _r = len(_f.k) THEN len(_f.x) + 1 ELSE _f.k[_r + 1] END - _f.k[_r], _f.x[_f.k[_r]])'''
    )
}) END"""
_BACKWARD = f"""CASE WHEN len(_f.k) = 0 THEN to_json(_f.x) ELSE to_json({
    _RUNS.format(
        run='''list_resize(CAST([] AS JSON[]),
        _f.k[_r] - CASE WHEN _r = 1 THEN 0 ELSE _f.k[_r - 1] END, _f.x[_f.k[_r]])'''
    )
} || _f.x[_f.k[len(_f.k)] + 1:]) END"""
_CONST = "to_json(list_transform(_f.x, lambda _e, _i: CASE WHEN _f.m[_i] THEN _f.s.c ELSE _e END))"
# Values from one known value to before the next; for a series of integers they are truncated to integers. The known
# value is unchanged, also next to a value that is not finite.
_LINE = """list_transform(range(0, _f.k[_r + 1] - _f.k[_r]), lambda _d: list_transform([_f.v[_f.k[_r]]
    + CASE WHEN _d = 0 THEN 0 ELSE _d * (_f.v[_f.k[_r + 1]] - _f.v[_f.k[_r]]) / (_f.k[_r + 1] - _f.k[_r]) END],
    lambda _y: CASE WHEN _f.w THEN trunc(_y) ELSE _y END)[1])"""
_BETWEEN = _RUNS.replace("len(_f.k) + 1", "len(_f.k)").format(run=_LINE)
_LINEAR = f"""CASE WHEN len(_f.k) = 0 THEN CASE WHEN _f.s.c IS NULL THEN _f.s.j
        ELSE to_json(list_transform(_f.x, lambda _e: _f.s.c)) END
    ELSE kql_same_kind(
        CASE WHEN _f.s.e THEN list_resize(CAST([] AS DOUBLE[]), _f.k[1] - 1, _f.v[_f.k[1]]) ELSE _f.v[1:_f.k[1] - 1] END
        || {_BETWEEN} || [_f.v[_f.k[len(_f.k)]]]
        || CASE WHEN _f.s.e THEN list_resize(CAST([] AS DOUBLE[]), len(_f.x) - _f.k[len(_f.k)], _f.v[_f.k[len(_f.k)]])
            ELSE _f.v[_f.k[len(_f.k)] + 1:] END, _f.w) END"""

_FILL_MACROS: tuple[str, ...] = (
    _build_fill_macro("series_fill_forward", "", "", _FORWARD),
    _build_fill_macro("series_fill_backward", "", "", _BACKWARD),
    _build_fill_macro("series_fill_const", ", constant", ", c := TRY_CAST(constant AS JSON)", _CONST),
    _build_fill_macro(
        "series_fill_linear",
        ", edges, constant",
        ", e := edges, c := TRY_CAST(constant AS JSON)",
        _LINEAR,
    ),
)


def _install_fill_functions() -> None:
    """Add the functions that fill gaps in series to the KQL translator library."""
    add_custom_function("series_fill_forward", (1, 2), lambda call: _render_fill_call(call, "NULL"))
    add_custom_function("series_fill_backward", (1, 2), lambda call: _render_fill_call(call, "NULL"))
    add_custom_function(
        "series_fill_linear", (1, 2, 3, 4), lambda call: _render_fill_call(call, "NULL", "TRUE", "CAST(0 AS DOUBLE)")
    )
    add_custom_function("series_fill_const", (1, 2, 3), _render_fill_const)


def _render_fill_call(call: ir.FunctionCall, *defaults: Sql) -> Sql:
    """Return SQL for a call of a function that fills gaps; ``defaults`` replace missing arguments."""
    arguments = [render_expression(arg) for arg in call.args]
    return f"kql_{call.name.lower()}({', '.join([*arguments, *defaults[len(arguments) - 1 :]])})"


def _render_fill_const(call: ir.FunctionCall) -> Sql:
    series, *rest = (render_expression(arg) for arg in call.args)
    constant, missing = (rest[index] if index < len(rest) else default for index, default in enumerate(("0", "NULL")))
    return f"kql_series_fill_const({series}, {missing}, {constant})"


_FILTERS = "emulators.kusto.series.filters"
_FIR = SeriesFunction(
    "series_fir",
    ("DOUBLE[]", "DOUBLE[]", "BOOLEAN", "BOOLEAN"),
    {"filtered": "series"},
    f"{_FILTERS}:apply_fir_filter",
)
_IIR = SeriesFunction("series_iir", ("DOUBLE[]",) * 3, {"filtered": "series"}, f"{_FILTERS}:apply_iir_filter")
series_functions: tuple[SeriesFunction, ...] = (_FIR, _IIR)
"""Functions in Python that the KQL functions of this module call."""


def _install_filter_functions() -> None:
    """Add the filters ``series_fir`` and ``series_iir`` to the KQL translator library."""
    add_custom_function("series_fir", (2, 3, 4), lambda call: _render_filter_call(_FIR, call))
    add_custom_function("series_iir", (3,), lambda call: _render_filter_call(_IIR, call))


def _render_filter_call(function: SeriesFunction, call: ir.FunctionCall) -> Sql:
    """Return SQL for a call of a filter; missing arguments are null."""
    arguments = [
        f"kql_numbers({render_expression(arg)})" if kind == "DOUBLE[]" else render_expression(arg)
        for arg, kind in zip(call.args, function.parameters, strict=False)
    ]
    missing = ["NULL"] * (len(function.parameters) - len(arguments))
    filtered = f"struct_extract({function.render_call_sql(*arguments, *missing)}, 'filtered')"
    return f"kql_series(CAST({filtered} AS DOUBLE[]))"


SUPPORTED: tuple[str, ...] = (
    *_ARITHMETIC,
    "series_divide",
    "series_pow",
    *_COMPARISONS,
    *_UNARY,
    *_KIND_KEEPING,
    "series_sum",
    "series_product",
    "series_dot_product",
    "series_magnitude",
    "series_cosine_similarity",
    "series_pearson_correlation",
    "series_fill_linear",
    "series_fill_const",
    "series_fill_forward",
    "series_fill_backward",
    "series_fir (approximate if a filter of even length is centered)",
    "series_iir",
)

macros: tuple[str, ...] = (
    *_VALUES_MACROS,
    *_ELEMENTWISE_MACROS,
    *_FILL_MACROS,
)


def install_into_translator() -> None:
    """Add arithmetic, filling of gaps and filters of series to the KQL translator library."""
    _install_elementwise_functions()
    _install_fill_functions()
    _install_filter_functions()


# The casts keep the type if DuckDB replaces a call with constant arguments by a null.
_CONVERSIONS = {
    "series": "kql_series(CAST({0} AS DOUBLE[]))",
    "integers": "to_json(CAST({0} AS BIGINT[]))",
    "real": "CAST({0} AS DOUBLE)",
    "long": "CAST({0} AS BIGINT)",
}


@dataclass(frozen=True)
class Argument:
    """Argument of a KQL function.

    Attributes:
        name: name of the argument in the documentation of Kusto.
        kind: ``series``, ``real``, ``int`` or ``string``.
        values: accepted values of a string.
    """

    name: str
    kind: str = "series"
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeriesCall:
    """KQL function on series, implemented by a Python function.

    Attributes:
        name: name of the KQL function.
        arguments: arguments of the KQL function, in order.
        required: number of arguments that must be present; the others are null if they are missing.
        function: function that computes the results.
    """

    name: str
    arguments: tuple[Argument, ...]
    required: int
    function: SeriesFunction

    @property
    def argument_counts(self) -> Collection[int]:
        """Accepted numbers of arguments, from the required arguments to all arguments."""
        return range(self.required, len(self.arguments) + 1)

    def render(self, values: Sequence[ir.Expr]) -> Sql:
        """Return SQL that calls the Python function; the result is a struct with all outputs."""
        rendered = [
            _render_argument(self.name, argument, value)
            for argument, value in zip(self.arguments, values, strict=False)
        ]
        return self.function.render_call_sql(*rendered, *["NULL"] * (len(self.arguments) - len(rendered)))

    def render_output(self, values: Sequence[ir.Expr], output_name: str) -> Sql:
        """Return SQL for one output of the Python function, as a KQL value."""
        value = f"struct_extract({self.render(values)}, {quote_text(output_name)})"
        return _CONVERSIONS[self.function.outputs[output_name]].format(value)


def add_series_function_with_one_output(call: SeriesCall, output_name: str) -> None:
    """Add a KQL function to the translator library that returns one output of its Python function."""
    add_custom_function(call.name, call.argument_counts, lambda node: call.render_output(node.args, output_name))


def add_series_function_with_output_columns(call: SeriesCall) -> None:
    """Add a KQL function to the translator library; each output of its Python function becomes a separate column."""
    internal = f"{call.name} output"  # no query can call a function whose name contains a space
    add_custom_function(internal, range(1, 65), lambda node: _render_call_for_one_output(call, node))
    outputs = [SeriesOutput(name) for name in call.function.outputs]
    add_multi_result_function(
        call.name, outputs, call.argument_counts, build_output_builder_for_internal_function(internal)
    )


def _render_call_for_one_output(call: SeriesCall, node: ir.FunctionCall) -> Sql:
    *values, output = node.args
    assert isinstance(output, ir.Literal)  # noqa: S101  the reader adds it
    return call.render_output(values, str(output.value))


def build_output_builder_for_internal_function(internal_function: str) -> OutputExpressionBuilder:
    """Return a function that builds the expression for one output of a KQL function with several outputs.

    The expression is a call of an internal function, with the arguments of the KQL function and the output's name.

    Args:
        internal_function: name of the internal function; it contains a space, so that no query can call the function.
    """

    def build_output_expression(arguments: tuple[ir.Expr, ...], output: SeriesOutput) -> ir.Expr:
        return ir.FunctionCall(internal_function, (*arguments, ir.Literal(output.name, "string")))

    return build_output_expression


def _render_argument(function_name: str, argument: Argument, value: ir.Expr) -> Sql:
    return _RENDERERS[argument.kind](function_name, argument, value)


def _render_series_argument(_function_name: str, _argument: Argument, value: ir.Expr) -> Sql:
    return f"kql_numbers({render_expression(value)})"


def _render_number_argument(function_name: str, argument: Argument, value: ir.Expr) -> Sql:
    if isinstance(value, ir.Literal) and (
        isinstance(value.value, bool) or not isinstance(value.value, int | float | None)
    ):
        raise semantic_error(f"{function_name}(): the argument {argument.name} must be a number")
    return render_expression(value)


def _render_text_argument(function_name: str, argument: Argument, value: ir.Expr) -> Sql:
    accepted = " or ".join(f"'{each}'" for each in argument.values)
    message = f"{function_name}(): the argument {argument.name} must be {accepted}"
    if isinstance(value, ir.Literal):
        if value.value not in (None, *argument.values):
            raise semantic_error(message)
        return "NULL" if value.value is None else quote_text(str(value.value))
    accepted_list = ", ".join(map(quote_text, argument.values))
    return (
        f"list_transform([CAST({render_expression(value)} AS VARCHAR)], lambda _t: CASE WHEN _t IS NULL "
        f"OR _t IN ({accepted_list}) THEN _t ELSE error({quote_text(f'kql:SEM0001:{message}')}) END)[1]"
    )


_RENDERERS: Mapping[str, Callable[[str, Argument, ir.Expr], str]] = {
    "series": _render_series_argument,
    "real": _render_number_argument,
    "int": _render_number_argument,
    "string": _render_text_argument,
}
