"""KQL functions over dynamic (JSON) values: arrays, property bags (objects) and sets."""

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import naming

from emulators.kusto.extensions.registry import (
    ANY_NUMBER,
    add_custom_function,
    add_function_that_reuses_arguments,
    render_argument,
)
from emulators.kusto.extensions.sql import (
    Sql,
    render_as_json_list,
    render_as_json_map,
    render_expression,
    render_with_arguments_evaluated_once,
)
from emulators.kusto.extensions.type_checks import add_type_guard, render_error
from emulators.kusto.stop_events import EXECUTION

SUPPORTED: tuple[str, ...] = (
    "array_iff",
    "array_iif",
    "array_index_of",
    "array_length",
    "array_reverse",
    "array_rotate_left",
    "array_rotate_right",
    "array_shift_left",
    "array_shift_right",
    "array_slice",
    "array_sort_asc",
    "array_sort_desc",
    "array_split",
    "array_sum",
    "bag_has_key",
    "bag_keys",
    "bag_merge",
    "bag_pack_columns",
    "bag_remove_keys",
    "bag_set_key",
    "bag_zip",
    "pack_dictionary",
    "range",
    "repeat",
    "set_difference",
    "set_equals",
    "set_has_element",
    "set_intersect",
    "set_union",
)

macros: tuple[str, ...] = (
    # Elements in the order of their first occurrence. That takes quadratic time, so the order of long lists is not
    # preserved.
    (
        "CREATE OR REPLACE MACRO kql_each_once(l) AS list_transform([l], lambda _l: CASE WHEN len(_l) > 2000 THEN "
        "list_distinct(_l) ELSE list_filter(_l, lambda _e, _i: list_position(_l, _e) = _i) END)[1]"
    ),
    # The first entry with each key, in the given order. Sorted entries are compared with their neighbours only, because
    # a search for each key in a list takes quadratic time.
    (
        "CREATE OR REPLACE MACRO kql_first_entries(s) AS list_transform([s], lambda _s: list_transform("
        "[list_sort(list_transform(_s, lambda _e, _i: {'key': _e.key, 'at': _i}))], lambda _k: "
        "list_transform(list_sort(list_transform("
        "list_filter(_k, lambda _e, _i: _k[_i - 1].key IS DISTINCT FROM _e.key), "
        "lambda _e: _e.at)), lambda _i: _s[_i]))[1])[1]"
    ),
    # Numbers before texts, each by value, nulls last; as JSON texts, 10 would precede 9.
    (
        "CREATE OR REPLACE MACRO kql_sorted(l, direction, last) AS "
        "list_transform([list_transform(list_sort(list_transform("
        "list_filter(l, lambda _e: _e IS NOT NULL), lambda _e: struct_pack("
        "k := CASE json_type(_e) WHEN 'VARCHAR' THEN 2 WHEN 'BOOLEAN' THEN 1 WHEN 'ARRAY' THEN 3 WHEN "
        "'OBJECT' THEN 3 ELSE 0 END, "
        "n := TRY_CAST(_e AS DOUBLE), t := _e ->> '$', e := _e)), direction), lambda _s: _s.e)], lambda "
        "_o: to_json(CASE WHEN last THEN list_concat(_o, "
        "list_filter(l, lambda _e: _e IS NULL)) ELSE list_concat(list_filter(l, lambda _e: _e IS NULL), _o) END))[1]"
    ),
    # The distance is limited before it is multiplied by the direction d (1 or -1) and added, so that no sum overflows.
    (
        "CREATE OR REPLACE MACRO kql_rotated(l, n, d) AS "
        "list_transform([struct_pack(items := l, distance := n % nullif(len(l), 0) * d)], lambda _s: "
        "CASE WHEN len(_s.items) = 0 THEN to_json(_s.items) ELSE to_json(list_transform(range(0, len(_s.items)), "
        "lambda _i: _s.items[(_i + _s.distance + len(_s.items)) % len(_s.items) + 1])) END)[1]"
    ),
    (
        "CREATE OR REPLACE MACRO kql_shifted(l, n, d, f) AS "
        "list_transform([struct_pack(items := l, distance := greatest(least(n, len(l)), -len(l)) * d)], lambda _s: "
        "to_json(list_transform(range(0, len(_s.items)), lambda _i: "
        "CASE WHEN _i + _s.distance BETWEEN 0 AND len(_s.items) - 1 THEN _s.items[_i + _s.distance + 1] "
        "ELSE f END)))[1]"
    ),
    # Limited before elements are generated; Kusto has the same limit for arrays.
    (
        "CREATE OR REPLACE MACRO kql_range(a BIGINT, b BIGINT, s BIGINT) AS to_json(generate_series(a, "
        "CASE WHEN s > 0 THEN least(b, a + s * 1048575) ELSE greatest(b, a + s * 1048575) END, s)), "
        "(a DOUBLE, b DOUBLE, s DOUBLE) AS to_json(list_transform(range(0, least(CAST(floor((b - a) / s) "
        "AS BIGINT), 1048575) "
        "+ 1), lambda _i: a + _i * s)), "
        "(a TIMESTAMP, b TIMESTAMP, s INTERVAL) AS to_json(list_transform(generate_series(a, CASE WHEN s "
        "> INTERVAL '0s' "
        "THEN least(b, a + s * 1048575) ELSE greatest(b, a + s * 1048575) END, s), "
        "lambda _e: strftime(_e, '%Y-%m-%dT%H:%M:%S.%f') || '0Z')), "
        "(a INTERVAL, b INTERVAL, s INTERVAL) AS to_json(list_transform(generate_series(epoch_us(a), "
        "least(epoch_us(b), epoch_us(a) + epoch_us(s) * 1048575), epoch_us(s)), lambda _e: "
        "kql_span(to_microseconds(_e)))), "
        "(a BIGINT, b BIGINT) AS to_json(generate_series(a, least(b, a + 1048575), 1)), "
        "(a DOUBLE, b DOUBLE) AS to_json(list_transform(range(0, least(CAST(floor(b - a) AS BIGINT), 1048575) + 1), "
        "lambda _i: a + _i)), "
        "(a TIMESTAMP, b TIMESTAMP) AS to_json(list_transform(generate_series(a, least(b, a + INTERVAL 1 "
        "HOUR * 1048575), "
        "INTERVAL 1 HOUR), lambda _e: strftime(_e, '%Y-%m-%dT%H:%M:%S.%f') || '0Z')), "
        "(a INTERVAL, b INTERVAL) AS to_json(list_transform(generate_series(epoch_us(a), "
        "least(epoch_us(b), epoch_us(a) + 3600000000 * 1048575), 3600000000), lambda _e: "
        "kql_span(to_microseconds(_e))))"
    ),
)

_MAX_ARRAY_CHARACTERS = 16_777_216
_MAX_COMPARISONS = 100_000_000
"""Maximum number of pairs of elements that a set function compares, because DuckDB cannot interrupt the comparison."""


def install_into_translator() -> None:
    """Add the functions over dynamic values to the KQL translator library."""
    _install_array_functions()
    _install_bag_functions()
    _install_set_functions()
    add_function_that_reuses_arguments("range", (2, 3), _render_range_array)
    add_custom_function("repeat", (2,), _render_repeat_array)


def _install_array_functions() -> None:
    add_custom_function("array_sort_asc", (1, 2), lambda call: _render_array_sort(call, "ASC"))
    add_custom_function("array_sort_desc", (1, 2), lambda call: _render_array_sort(call, "DESC"))
    add_function_that_reuses_arguments(
        "array_rotate_left", (2,), lambda a, n: f"kql_rotated({render_as_json_list(a)}, {n}, 1)"
    )
    add_function_that_reuses_arguments(
        "array_rotate_right", (2,), lambda a, n: f"kql_rotated({render_as_json_list(a)}, {n}, -1)"
    )
    add_function_that_reuses_arguments(
        "array_shift_left",
        (2, 3),
        lambda a, n, f="NULL": f"kql_shifted({render_as_json_list(a)}, {n}, 1, {_render_json_conversion(f)})",
    )
    add_function_that_reuses_arguments(
        "array_shift_right",
        (2, 3),
        lambda a, n, f="NULL": f"kql_shifted({render_as_json_list(a)}, {n}, -1, {_render_json_conversion(f)})",
    )
    add_function_that_reuses_arguments(
        "array_reverse", (1,), lambda a: f"to_json(list_reverse({render_as_json_list(a)}))"
    )
    add_function_that_reuses_arguments("array_slice", (3,), _render_array_slice)
    add_function_that_reuses_arguments("array_split", (2,), _render_array_split)
    add_function_that_reuses_arguments("array_sum", (1,), _render_array_sum)
    add_function_that_reuses_arguments("array_index_of", (2, 3, 4, 5), _render_array_index_of)
    for name in ("array_iff", "array_iif"):
        add_function_that_reuses_arguments(name, (3,), _render_array_iff)


def _install_bag_functions() -> None:
    add_function_that_reuses_arguments(
        "bag_keys", (1,), lambda b: f"CASE WHEN json_type({b}) = 'OBJECT' THEN to_json(json_keys({b})) END"
    )
    add_custom_function("bag_merge", ANY_NUMBER, _render_bag_merge)
    add_function_that_reuses_arguments("bag_has_key", (2,), _render_bag_has_key)
    add_function_that_reuses_arguments("bag_remove_keys", (2,), _render_bag_remove_keys)
    add_function_that_reuses_arguments("bag_set_key", (3,), _render_bag_set_key)
    add_function_that_reuses_arguments("bag_zip", (2,), _render_bag_zip)
    add_custom_function("bag_pack_columns", ANY_NUMBER, _render_bag_pack_columns)
    add_custom_function(
        "pack_dictionary", ANY_NUMBER, lambda call: render_expression(ir.FunctionCall("bag_pack", call.args))
    )


def _install_set_functions() -> None:
    for name, write in (
        ("set_union", _render_set_union),
        ("set_intersect", _render_set_intersect),
        ("set_difference", _render_set_difference),
    ):
        add_custom_function(name, range(2, 65), write)
    add_function_that_reuses_arguments(
        "set_equals",
        (2,),
        lambda a, b: (
            f"coalesce(list_sort(list_distinct({render_as_json_list(a)})) = "
            f"list_sort(list_distinct({render_as_json_list(b)})), false)"
        ),
    )
    add_function_that_reuses_arguments(
        "set_has_element",
        (2,),
        lambda a, v: f"coalesce(list_contains({render_as_json_list(a)}, {_render_json_conversion(v)}), false)",
    )


def _render_json_conversion(sql: Sql) -> Sql:
    """Return SQL that converts a value to JSON, so that it can become an element of a dynamic value."""
    return f"CAST(kql_json({sql}) AS JSON)"


def _render_range_array(*limits: Sql) -> Sql:
    return f"kql_range({', '.join(limits)})"


def _render_array_sort(call: ir.FunctionCall, sql_direction: str) -> Sql:
    last = "true"
    if len(call.args) > 1:
        flag = call.args[1]
        if not isinstance(flag, ir.Literal) or flag.kind != "bool":
            raise KqlUnsupportedError(
                f"{call.name}() of several arrays as part of an expression",
                hint="assign the call to a column of its own first",
            )
        last = str(bool(flag.value)).lower()
    return render_with_arguments_evaluated_once(
        [render_expression(call.args[0])], lambda a: f"kql_sorted({render_as_json_list(a)}, '{sql_direction}', {last})"
    )


def _render_repeat_array(call: ir.FunctionCall) -> Sql:
    value, count = render_argument("repeat", 0, call.args[0]), render_argument("repeat", 1, call.args[1])

    def render_repeat_function(value: Sql, count: Sql) -> Sql:
        size = f"length(CAST({_render_json_conversion(value)} AS VARCHAR)) * least({count}, 1048576)"
        listed = (
            f"to_json(list_transform(range(0, least({count}, 1048576)), lambda _i: {_render_json_conversion(value)}))"
        )
        return (
            f"CASE WHEN {size} > {_MAX_ARRAY_CHARACTERS} THEN error('repeat() would create an array of more than "
            f"{_MAX_ARRAY_CHARACTERS} characters') WHEN {count} >= 0 THEN {listed} END"
        )

    return render_with_arguments_evaluated_once([value, count], render_repeat_function)


def _render_array_slice(array: Sql, start: Sql, end: Sql) -> Sql:
    # Both indexes start at 0 and are inclusive; negative ones count from the end. Positions in DuckDB start at 1. The
    # last one is at least 0, because DuckDB counts a negative position from the end, too.
    listed = render_as_json_list(array)
    first, last = _render_slice_position(listed, start, 1), _render_slice_position(listed, end, 0)
    return f"to_json(list_slice({listed}, {first}, {last}))"


def _render_slice_position(json_list: Sql, index: Sql, lowest_position: int) -> Sql:
    """Return SQL that converts an index of ``array_slice`` to a position in the list, which starts at 1.

    The result is at least ``lowest_position``, and at most the first position after the list.
    """
    return (
        f"CASE WHEN {index} < 0 THEN greatest(len({json_list}) + {index} + 1, {lowest_position}) "
        f"WHEN {index} < len({json_list}) THEN {index} + 1 WHEN {index} IS NOT NULL THEN len({json_list}) + 1 END"
    )


def _render_array_split(array: Sql, indexes: Sql) -> Sql:
    """Return SQL that splits an array before each given index; a negative index counts from the end of the array."""
    cuts = (
        f"list_sort(list_transform(CASE WHEN json_type(to_json({indexes})) = 'ARRAY' "
        f"THEN CAST(to_json({indexes}) AS BIGINT[]) "
        f"ELSE [TRY_CAST(to_json({indexes}) AS BIGINT)] END, "
        f"lambda _c: least(greatest(CASE WHEN _c < 0 THEN _c + len({render_as_json_list(array)}) ELSE _c END, 0), "
        f"len({render_as_json_list(array)}))))"
    )
    bounds = f"list_concat(list_concat([0::BIGINT], {cuts}), [len({render_as_json_list(array)})])"
    return (
        f"list_transform([struct_pack(l := {render_as_json_list(array)}, b := {bounds})], "
        "lambda _s: to_json(list_transform("
        "range(1, len(_s.b)), lambda _i: list_slice(_s.l, _s.b[_i] + 1, _s.b[_i + 1]))))[1]"
    )


def _render_array_sum(array: Sql) -> Sql:
    numbers = (
        f"list_transform({render_as_json_list(array)}, lambda _e: "
        "CASE WHEN json_type(_e) IN ('BIGINT', 'UBIGINT', 'DOUBLE') THEN CAST(_e AS DOUBLE) END)"
    )
    return (
        f"CASE WHEN len(list_filter({numbers}, lambda _e: _e IS NULL)) = 0 THEN CAST(list_sum({numbers}) AS DOUBLE) END"
    )


def _render_array_index_of(array: Sql, value: Sql, start: Sql = "0", length: Sql = "-1", occurrence: Sql = "1") -> Sql:
    listed = render_as_json_list(array)
    first = f"CASE WHEN {start} < 0 THEN greatest(len({listed}) + {start}, 0) ELSE least({start}, len({listed})) END"
    end = f"CASE WHEN {length} < 0 THEN len({listed}) ELSE {first} + least({length}, len({listed})) END"
    hits = (
        f"list_filter(range({first}, least({end}, len({listed}))), "
        f"lambda _i: {listed}[_i + 1] = {_render_json_conversion(value)})"
    )
    return f"CASE WHEN {listed} IS NOT NULL THEN coalesce({hits}[{occurrence}], -1) END"


def _render_array_iff(conditions: Sql, if_true: Sql, if_false: Sql) -> Sql:
    def render_element(sql: Sql) -> Sql:
        """Return SQL for the element at position ``_i`` if the value is an array, else for the value itself."""
        return (
            f"CASE WHEN json_type(to_json({sql})) = 'ARRAY' THEN CAST(to_json({sql}) AS JSON[])[_i] ELSE "
            f"to_json({sql}) END"
        )

    chosen = (
        "CASE WHEN json_type(_c) = 'BOOLEAN' THEN CASE WHEN CAST(_c AS BOOLEAN) "
        f"THEN {render_element(if_true)} ELSE {render_element(if_false)} END "
        "WHEN json_type(_c) IN ('BIGINT', 'UBIGINT', 'DOUBLE') THEN CASE WHEN CAST(_c AS DOUBLE) <> 0 "
        f"THEN {render_element(if_true)} ELSE {render_element(if_false)} END END"
    )
    return f"to_json(list_transform({render_as_json_list(conditions)}, lambda _c, _i: {chosen}))"


def _render_bag_merge(call: ir.FunctionCall) -> Sql:
    # The first bag with a key determines its value; json_merge_patch would remove keys with null values.
    bags = [render_argument("bag_merge", index, arg) for index, arg in enumerate(call.args)]
    listed = ", ".join(f"map_entries({render_as_json_map(each)})" for each in bags)
    return f"to_json(map_from_entries(kql_first_entries(flatten([{listed}]))))"


def _render_bag_has_key(bag: Sql, key: Sql) -> Sql:
    is_path = f"starts_with({key}, '$.') OR starts_with({key}, '$[')"
    # DuckDB reads a constant path when it binds the SQL, so the path must be null for a name such as *.
    path = f"CASE WHEN {is_path} THEN {key} END"
    found = f"CASE WHEN {is_path} THEN json_exists({bag}, {path}) ELSE list_contains(json_keys({bag}), {key}) END"
    return f"CASE WHEN json_type({bag}) = 'OBJECT' THEN {found} ELSE false END"


def _render_bag_remove_keys(bag: Sql, keys: Sql) -> Sql:
    names, parsed = f"CAST(to_json({keys}) AS VARCHAR[])", render_as_json_map(bag)
    # The names precede the entries of the bag, so that they replace the entries with equal keys.
    removed = f"list_transform({names}, lambda _k: {{'key': _k, 'value': CAST(NULL AS JSON), 'stays': false}})"
    entries = f"list_transform(map_entries({parsed}), lambda _e: {{'key': _e.key, 'value': _e.value, 'stays': true}})"
    remaining = f"list_filter(kql_first_entries(list_concat({removed}, {entries})), lambda _e: _e.stays)"
    nested = f"json_type({bag}) = 'OBJECT' AND len(list_filter({names}, lambda _k: starts_with(_k, '$'))) > 0"
    return (
        f"CASE WHEN {nested} THEN CAST(kql_bag_without({EXECUTION}, CAST({bag} AS VARCHAR), {names}) AS JSON) "
        f"WHEN {parsed} IS NOT NULL AND {names} IS NULL THEN CAST('{{}}' AS JSON) "
        f"WHEN {parsed} IS NOT NULL THEN to_json(map_from_entries("
        f"list_transform({remaining}, lambda _e: {{'key': _e.key, 'value': _e.value}}))) END"
    )


def _render_bag_set_key(bag: Sql, key: Sql, value: Sql) -> Sql:
    others = f"list_filter(map_entries({render_as_json_map(bag)}), lambda _e: _e.key <> {key})"
    placed = (
        f"list_transform(map_entries({render_as_json_map(bag)}), lambda _e: CASE WHEN _e.key = {key} THEN "
        f"{{'key': {key}, 'value': {_render_json_conversion(value)}}} ELSE _e END)"
    )
    return (
        f"CASE WHEN json_type({bag}) = 'OBJECT' AND (starts_with({key}, '$.') OR starts_with({key}, '$[')) THEN "
        f"CAST(kql_bag_with({EXECUTION}, CAST({bag} AS VARCHAR), {key}, "
        f"CAST({_render_json_conversion(value)} AS VARCHAR)) AS JSON) "
        f"WHEN len({others}) < len(map_entries({render_as_json_map(bag)})) THEN to_json(map_from_entries({placed})) "
        f"ELSE to_json(map_from_entries(list_append(map_entries({render_as_json_map(bag)}), "
        f"{{'key': {key}, 'value': {_render_json_conversion(value)}}}))) END"
    )


def _render_bag_zip(keys: Sql, values: Sql) -> Sql:
    pairs = (
        "list_transform(_z.k, lambda _k, _i: "
        "{'key': _k ->> '$', 'value': coalesce(_z.v[_i], CAST('null' AS JSON)), 'kind': json_type(_k)})"
    )
    texts = f"list_filter({pairs}, lambda _e: _e.kind = 'VARCHAR')"
    entries = f"list_transform(kql_first_entries({texts}), lambda _e: {{'key': _e.key, 'value': _e.value}})"
    # The arrays are converted once, not for each element.
    arrays = f"struct_pack(k := {render_as_json_list(keys)}, v := {render_as_json_list(values)})"
    return f"list_transform([{arrays}], lambda _z: to_json(map_from_entries({entries})))[1]"


def _render_bag_pack_columns(call: ir.FunctionCall) -> Sql:
    pairs: list[ir.Expr] = []
    for arg in call.args:
        name = naming.expression_name(arg)
        if not isinstance(arg, ir.ColumnRef) or name is None:
            raise KqlUnsupportedError(
                "function:bag_pack_columns", hint="each argument of bag_pack_columns() must be a column"
            )
        pairs += [ir.Literal(name, "string"), arg]
    return render_expression(ir.FunctionCall("bag_pack", tuple(pairs)))


def _render_arguments_as_arrays(call: ir.FunctionCall) -> list[Sql]:
    return [
        render_as_json_list(render_expression(arg))
        if isinstance(arg, ir.ColumnRef)
        else f"TRY_CAST(to_json({render_expression(arg)}) AS JSON[])"
        for arg in call.args
    ]


def _render_set_union(call: ir.FunctionCall) -> Sql:
    return f"to_json(kql_each_once(flatten([{', '.join(_render_arguments_as_arrays(call))}])))"


def _render_set_intersect(call: ir.FunctionCall) -> Sql:
    first, *others = _render_arguments_as_arrays(call)
    for other in others:
        first = render_with_arguments_evaluated_once(
            [first, other],
            lambda a, b: _add_limit_of_compared_pairs(
                call.name, a, b, f"list_filter({a}, lambda _e: list_contains({b}, _e))"
            ),
        )
    return f"to_json(kql_each_once({first}))"


def _render_set_difference(call: ir.FunctionCall) -> Sql:
    first, *others = _render_arguments_as_arrays(call)
    remaining = render_with_arguments_evaluated_once(
        [first, f"flatten([{', '.join(others)}])"],
        lambda a, b: _add_limit_of_compared_pairs(
            call.name, a, b, f"list_filter({a}, lambda _e: NOT list_contains({b}, _e))"
        ),
    )
    return f"to_json(kql_each_once({remaining}))"


def _add_limit_of_compared_pairs(function_name: str, first_list: Sql, second_list: Sql, comparison_sql: Sql) -> Sql:
    """Add a check to ``comparison_sql``, which compares each pair of elements of two lists.

    The SQL then fails at run time, without comparing, if there are too many pairs.
    """
    failure = render_error(
        "EMB0001",
        f"{function_name}() of arrays with more than {_MAX_COMPARISONS} pairs of elements is not supported by the "
        "embedded query engine",
    )
    return add_type_guard(f"len({first_list}) * len({second_list}) > {_MAX_COMPARISONS}", failure, comparison_sql)
