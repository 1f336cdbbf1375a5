"""KQL functions over strings, including IPv4 addresses, and a size limit for concatenated strings."""

import json
import re
from collections.abc import Callable

from duckdb_kql import ir, translate

from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.registry import (
    ANY_NUMBER,
    add_custom_function,
    add_function_that_reuses_arguments,
    add_template_function,
    render_text_argument,
)
from emulators.kusto.extensions.sql import Sql, quote_text, render_expression, render_with_arguments_evaluated_once
from emulators.kusto.extensions.type_checks import render_error
from emulators.kusto.library_errors import RUNAWAY

SUPPORTED: tuple[str, ...] = (
    "base64_decode_tostring (UTF-8)",
    "base64_encode_tostring (UTF-8)",
    "has_any_index",
    "indexof",
    "isascii",
    "parse_csv",
    "parse_path",
    "parse_urlquery",
    "parse_version",
    "regex_quote",
    "replace_strings",
    "split (index)",
    "strcmp",
    "string_size",
    "strrep (delimiter)",
    "translate",
    "unicode_codepoints_from_string",
    "unicode_codepoints_to_string",
    "url_decode",
    "url_encode",
    "url_encode_component",
    "ipv4_compare",
    "ipv4_is_in_range",
    "ipv4_is_match",
    "ipv4_is_private",
)


_CSV_RECORD = r'^(?:"(?:[^"]|"")*"|[^"\r\n])*'
_CSV_FIELD = r'((?:"(?:[^"]|"")*"|[^,"])*),'
_PATH = r"^(?:([A-Za-z][A-Za-z0-9+.\-]*)://)?(([A-Za-z]:)?(?:.*[/\\])?)([^/\\:]*)(?::(.*))?$"

_TEXT_MACROS: tuple[str, ...] = (
    (
        "CREATE OR REPLACE MACRO kql_csv(t) AS "
        f"to_json(list_transform(regexp_extract_all(regexp_extract(t, {quote_text(_CSV_RECORD)}) "
        f"|| ',', {quote_text(_CSV_FIELD)}, 1), lambda _f: CASE WHEN starts_with(_f, '\"') AND ends_with(_f, "
        "'\"') AND length(_f) > 1 "
        "THEN replace(_f[2:-2], '\"\"', '\"') ELSE _f END))"
    ),
    (
        f"CREATE OR REPLACE MACRO kql_path(t) AS list_transform([regexp_extract(t, {quote_text(_PATH)}, "
        "['scheme', 'dir', 'root', 'file', 'stream'])], lambda _p: json_object('Scheme', _p.scheme, "
        "'RootPath', _p.root, "
        "'DirectoryPath', regexp_replace(_p.dir, '[/\\\\]$', ''), "
        "'DirectoryName', regexp_extract(_p.dir, '([^/\\\\:]*)[/\\\\]$', 1), 'Filename', _p.file, "
        "'Extension', regexp_extract(_p.file, '\\.([^.]*)$', 1), 'AlternateDataStreamName', _p.stream))[1]"
    ),
    (
        "CREATE OR REPLACE MACRO kql_version(t) AS CASE WHEN regexp_full_match(t, '\\d{1,8}(\\.\\d{1,8}){0,3}') THEN "
        "list_transform([list_resize(str_split(t, '.'), 4, '0')], lambda _v: CAST(lpad(_v[1], 8, '0') || "
        "lpad(_v[2], 8, '0') "
        "|| lpad(_v[3], 8, '0') || lpad(_v[4], 8, '0') AS DECIMAL(38, 0)))[1] END"
    ),
    (
        "CREATE OR REPLACE MACRO kql_url(t) AS "
        "array_to_string(list_transform(regexp_extract_all(url_encode(t), '%..|[^%]'), "
        "lambda _c: CASE WHEN _c IN ('%21', '%2A', '%28', '%29') THEN url_decode(_c) WHEN _c = '~' THEN '%7e' "
        "WHEN starts_with(_c, '%') THEN lower(_c) ELSE _c END), '')"
    ),
    # Each match is first replaced by a private-use character, so that later lookups do not search the replacements of
    # earlier ones.
    (
        "CREATE OR REPLACE MACRO kql_replaced(t, l, r) AS list_reduce(list_prepend(list_reduce(list_prepend(t, l), "
        "lambda _t, _l, _i: CASE WHEN _l <> '' THEN replace(_t, _l, chr(CAST(983040 + _i AS INTEGER))) ELSE _t END), "
        "list_transform(l, lambda _l, _i: coalesce(r[_i], _l, ''))), "
        "lambda _t, _r, _i: replace(_t, chr(CAST(983040 + _i AS INTEGER)), _r))"
    ),
)


def _install_string_functions() -> None:
    """Add functions over strings to the KQL translator library."""
    add_function_that_reuses_arguments(
        "strcmp",
        (2,),
        lambda a, b: f"CAST(CASE WHEN {a} < {b} THEN -1 WHEN {a} > {b} THEN 1 WHEN {a} = {b} THEN 0 END AS BIGINT)",
    )
    add_template_function("string_size", "CAST(octet_length(encode({0})) AS BIGINT)", 1)
    add_template_function("regex_quote", "regexp_escape({0})", 1)
    add_template_function("isascii", "regexp_full_match({0}, '[[:ascii:]]*')", 1)
    add_template_function("base64_encode_tostring", "to_base64(encode({0}))", 1)
    # DuckDB's TRY rejects the subqueries that some arguments contain, so that the argument is bound outside.
    add_function_that_reuses_arguments(
        "base64_decode_tostring", (1,), "coalesce(TRY(decode(from_base64({0}))), '')".format
    )
    add_template_function("parse_csv", "kql_csv({0})", 1)
    add_template_function("parse_path", "kql_path({0})", 1)
    add_function_that_reuses_arguments("parse_version", (1,), lambda text: f"kql_version({text})")
    add_template_function("url_decode", "url_decode(replace({0}, '+', ' '))", 1)
    add_template_function("url_encode", "replace(kql_url({0}), '%20', '+')", 1)
    add_template_function("url_encode_component", "kql_url({0})", 1)
    writer.SPECIAL_FORMS["extract_all"] = _patch_extract_all_for_group_names(writer.SPECIAL_FORMS["extract_all"])
    add_custom_function("indexof", (2, 3, 4, 5), _render_indexof)
    add_custom_function("split", (2, 3), _render_split_call)
    add_function_that_reuses_arguments("translate", (3,), _render_translate)
    add_custom_function("replace_strings", (3,), _render_replace_strings)
    add_custom_function("strrep", (2, 3), _render_strrep)
    add_custom_function("parse_urlquery", (1,), _render_parse_urlquery)
    add_custom_function("has_any_index", (2,), _render_has_any_index)
    add_template_function(
        "unicode_codepoints_from_string", "to_json(list_transform(str_split({0}, ''), lambda _c: unicode(_c)))", 1
    )
    add_custom_function("unicode_codepoints_to_string", ANY_NUMBER, _render_text_from_code_points)
    add_custom_function("strcat_array", (2,), _render_strcat_array)


def _render_text_from_code_points(call: ir.FunctionCall) -> Sql:
    """Return SQL that builds a text from code points; each argument is a number or an array of numbers."""
    lists = [
        f"CASE WHEN json_type({json}) = 'ARRAY' THEN CAST({json} AS INTEGER[]) ELSE [CAST({json} AS INTEGER)] END"
        for json in (f"to_json({render_expression(arg)})" for arg in call.args)
    ]
    return f"array_to_string(list_transform(flatten([{', '.join(lists)}]), lambda _c: chr(_c)), '')"


def _render_strcat_array(call: ir.FunctionCall) -> Sql:
    """Return SQL that joins an array's elements.

    DuckDB's ``array_to_string`` can only be used if the delimiter is a constant.
    """
    array, between = f"to_json({render_expression(call.args[0])})", call.args[1]
    if isinstance(between, ir.Literal) and between.kind == "string":
        constant = f"array_to_string({_ELEMENTS}, {quote_text(str(between.value))})"
        return render_with_arguments_evaluated_once([array], lambda json: _render_array_join_or_text(json, constant))
    delimiter = translate.render_kql_tostring(between)
    joined = (
        f"substr(list_reduce({_ELEMENTS}, lambda _a, _b: _a || {{delimiter}} || _b, ''), length({{delimiter}}) + 1)"
    )
    return render_with_arguments_evaluated_once(
        [array, delimiter],
        lambda json, between: _render_array_join_or_text(json, joined.replace("{delimiter}", between)),
    )


_ELEMENTS = "list_transform(TRY_CAST({json} AS JSON[]), lambda _sa: coalesce(_sa ->> '$', ''))"


def _render_array_join_or_text(json_value: Sql, join_template: Sql) -> Sql:
    """Return SQL that joins the elements of a JSON array, and converts any other JSON value to text.

    ``join_template`` is the SQL that joins the elements of the array ``{json}``.
    """
    found = join_template.replace("{json}", json_value)
    return f"CASE WHEN json_type({json_value}) = 'ARRAY' THEN {found} ELSE coalesce({json_value} ->> '$', '') END"


def _render_indexof(call: ir.FunctionCall) -> Sql:
    texts = [render_text_argument(arg) for arg in call.args[:2]]
    has_limits = len(call.args) == 5 and not _is_unlimited_length(call.args[3])  # noqa: PLR2004
    render = _render_position_within_length if has_limits else _render_text_position
    return render_with_arguments_evaluated_once([*texts, *map(render_expression, call.args[2:])], render)


def _render_position_within_length(text: Sql, substring: Sql, start: Sql, length: Sql, occurrence: Sql) -> Sql:
    """Return SQL for the index of the n-th occurrence of a substring.

    Each occurrence must be within ``length`` characters after the previous occurrence.
    """
    first = f"CASE WHEN {start} < 0 THEN length({text}) + {start} ELSE {start} END"
    found = f"position({substring} IN substr({text}, _p + 2, {length}))"
    step = f"CASE WHEN _p < -1 OR {found} = 0 THEN CAST(-2 AS BIGINT) ELSE _p + {found} END"
    turns = f"range(0, least({occurrence}, length({text}) + 1))"
    last = f"list_reduce(list_prepend(CAST(({first}) - 1 AS BIGINT), {turns}), lambda _p, _n: {step})"
    return (
        f"CASE WHEN {length} < 0 THEN {_render_text_position(text, substring, start, length, occurrence)} "
        f"WHEN ({first}) < 0 OR {occurrence} < 0 THEN NULL WHEN {occurrence} = 0 THEN -1 ELSE greatest({last}, -1) END"
    )


def _is_unlimited_length(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Literal) and expr.value == -1


def _render_text_position(
    text: Sql, substring: Sql, start: Sql = "0", length: Sql = "-1", occurrence: Sql = "1"
) -> Sql:
    """Return SQL for the index of the n-th occurrence of a substring in the ``length`` characters from ``start``.

    The index is -1 without such an occurrence, and null for invalid arguments. A negative start counts from the end of
    the text; the length -1 means that there is no limit.
    """
    first = f"CASE WHEN {start} < 0 THEN length({text}) + {start} ELSE {start} END"
    size = f"CASE WHEN {length} < 0 THEN length({text}) ELSE {length} END"
    part = f"substr({text}, ({first}) + 1, {size})"
    if occurrence == "1":
        found = f"position({substring} IN {part}) - 1"
    else:
        starts = f"range(0, length({part}) - length({substring}) + 1)"
        hits = f"list_filter({starts}, lambda _i: substr({part}, _i + 1, length({substring})) = {substring})"
        found = f"coalesce({hits}[{occurrence}], -1)"
    at = f"list_transform([CAST({found} AS BIGINT)], lambda _f: CASE WHEN _f < 0 THEN -1 ELSE _f + ({first}) END)[1]"
    return f"CASE WHEN ({first}) < 0 OR {length} < -1 OR {occurrence} < 0 THEN NULL ELSE {at} END"


def _patch_extract_all_for_group_names(
    library_function: Callable[[ir.FunctionCall], Sql],
) -> Callable[[ir.FunctionCall], Sql]:
    def render_extract_all(call: ir.FunctionCall) -> Sql:
        if len(call.args) == 3:  # noqa: PLR2004
            pattern, groups, text = call.args
            call = ir.FunctionCall(call.name, (pattern, _convert_group_names_to_numbers(pattern, groups), text))
        return library_function(call)

    return render_extract_all


def _convert_group_names_to_numbers(pattern: ir.Expr, groups: ir.Expr) -> ir.Expr:
    """Return the argument ``groups`` of ``extract_all`` with numbers in place of the names of capture groups."""
    source = translate.constant_string(pattern)
    if source is None or not isinstance(groups, ir.Literal) or groups.kind != "dynamic":
        return groups
    try:
        members = json.loads(str(groups.value))
        numbers = re.compile(source.replace("(?<", "(?P<")).groupindex
    except (ValueError, OverflowError, RecursionError, re.error):
        return groups
    if not isinstance(members, list):
        return groups
    numbered = [numbers.get(each, each) if isinstance(each, str) else each for each in members]
    return ir.Literal(json.dumps(numbered), "dynamic")


def _render_split_call(call: ir.FunctionCall) -> Sql:
    parts = f"str_split({render_text_argument(call.args[0])}, {render_expression(call.args[1])})"
    if len(call.args) == 2:  # noqa: PLR2004
        return f"to_json({parts})"
    index = render_expression(call.args[2])
    return render_with_arguments_evaluated_once(
        [parts, index],
        lambda p, i: (
            f"CASE WHEN {i} BETWEEN 0 AND len({p}) - 1 THEN to_json([{p}[{i} + 1]]) ELSE to_json([]::VARCHAR[]) END"
        ),
    )


def _render_translate(searched_characters: Sql, replacement: Sql, source: Sql) -> Sql:
    # The last character of a short list of replacements is repeated; an empty list deletes.
    padded = (
        f"rpad({replacement}, CAST(greatest(length({searched_characters}), length({replacement})) AS INTEGER), "
        f"right({replacement}, 1))"
    )
    return (
        f"CASE WHEN {replacement} = '' THEN translate({source}, {searched_characters}, '') ELSE translate({source}, "
        f"{searched_characters}, {padded}) END"
    )


def _render_replace_strings(call: ir.FunctionCall) -> Sql:
    text, *lists = call.args
    texts = [
        f"list_transform(CAST(to_json({render_expression(each)}) AS JSON[]), lambda _t: CASE WHEN json_type(_t) = "
        "'VARCHAR' THEN _t ->> '$' END)"
        for each in lists
    ]
    return render_with_arguments_evaluated_once(
        [render_expression(text), *texts],
        lambda text, lookups, rewrites: f"kql_replaced({text}, {lookups}, {rewrites})",
    )


def _render_strrep(call: ir.FunctionCall) -> Sql:
    # A list of parts would need the memory of the text a second time.
    value = render_text_argument(call.args[0])
    delimiter = render_text_argument(call.args[2]) if len(call.args) > 2 else ""  # noqa: PLR2004
    count = f"CAST({render_expression(call.args[1])} AS BIGINT)"
    if not delimiter:
        return f"repeat({value}, {count})"
    return render_with_arguments_evaluated_once(
        [delimiter], lambda text: f"substr(repeat({text} || {value}, {count}), length({text}) + 1)"
    )


def _render_parse_urlquery(call: ir.FunctionCall) -> Sql:
    url = ir.FunctionCall("strcat", (ir.Literal("a://b?", "string"), call.args[0]))
    parsed = render_expression(ir.FunctionCall("parse_url", (url,)))
    return f"json_object('Query Parameters', json_extract({parsed}, '$.\"Query Parameters\"'))"


def _render_has_any_index(call: ir.FunctionCall) -> Sql:
    from duckdb_kql.translate.functions import term_match_sql  # noqa: PLC0415

    words = f"CAST(to_json({render_expression(call.args[1])}) AS VARCHAR[])"
    return render_with_arguments_evaluated_once(
        [render_expression(call.args[0]), words],
        lambda text, list_: (
            f"coalesce(list_filter(range(0, len({list_})), lambda _i: "
            f"{term_match_sql(text, f'{list_}[_i + 1]')})[1], -1)"
        ),
    )


_ADDRESS = r"^\s*(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:/(\d{1,2}))?\s*$"
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")

_IPV4_MACROS: tuple[str, ...] = (
    # Number and prefix length of an address, null for other texts.
    (
        "CREATE OR REPLACE MACRO kql_ip(t) AS list_transform([regexp_extract(t, "
        f"'{_ADDRESS}', ['a', 'b', 'c', 'd', 'p'])], "
        "lambda _x: CASE WHEN _x.a <> '' AND greatest(_x.a::INT, _x.b::INT, _x.c::INT, _x.d::INT) < 256 "
        "AND (_x.p = '' OR _x.p::INT <= 32) THEN struct_pack(n := ((_x.a::BIGINT * 256 + _x.b::BIGINT) * 256 "
        "+ _x.c::BIGINT) * 256 + _x.d::BIGINT, p := CASE WHEN _x.p = '' THEN 32 ELSE _x.p::INT END) END)[1]"
    ),
    (
        "CREATE OR REPLACE MACRO kql_ip_order(x, y, p) AS list_transform([struct_pack(a := kql_ip(x), b := kql_ip(y), "
        "p := p)], lambda _o: list_transform([32 - least(_o.a.p, _o.b.p, _o.p)], lambda _s: "
        "CASE WHEN _o.a IS NOT NULL AND _o.b IS NOT NULL THEN "
        "CAST(sign((_o.a.n >> _s) - (_o.b.n >> _s)) AS BIGINT) END)[1])[1]"
    ),
)


def _install_ipv4_functions() -> None:
    """Add functions over IPv4 addresses to the KQL translator library."""
    add_function_that_reuses_arguments("ipv4_compare", (2, 3), _render_ipv4_comparison)
    add_function_that_reuses_arguments(
        "ipv4_is_match", (2, 3), lambda x, y, p="32": f"({_render_ipv4_comparison(x, y, p)} = 0)"
    )
    add_function_that_reuses_arguments("ipv4_is_in_range", (2,), lambda x, y: f"({_render_ipv4_comparison(x, y)} = 0)")
    add_function_that_reuses_arguments(
        "ipv4_is_private",
        (1,),
        lambda x: "(" + " OR ".join(f"{_render_ipv4_comparison(x, quote_text(each))} = 0" for each in _PRIVATE) + ")",
    )


def _render_ipv4_comparison(left: Sql, right: Sql, prefix_length: Sql = "32") -> Sql:
    return f"kql_ip_order({left}, {right}, CAST({prefix_length} AS INTEGER))"


MAX_TEXT_BYTES = 16_777_216
"""Maximum size of a concatenated string.

Data Explorer usually limits a stored string to 1 MiB. DuckDB computes the size of a concatenation first. A size of
4 GiB or more invalidates the database instead of failing the query.
"""
_JOINS = {"strcat": "concat", "strcat_delim": "concat_ws"}
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
"""Operators whose result is a number, a datetime or a timespan, whatever their operands are."""

_SMALL = frozenset({"bool", "int", "long", "real", "decimal", "datetime", "timespan", "guid"})


def _install_text_size_checks() -> None:
    """Make ``strcat`` and ``strcat_delim`` check the size of their result before they build it."""
    for name, join in _JOINS.items():
        writer.SPECIAL_FORMS[name] = _add_text_size_check(name, join, writer.SPECIAL_FORMS[name])


def _add_text_size_check(
    function_name: str, sql_function: str, library_function: Callable[[ir.FunctionCall], Sql]
) -> Callable[[ir.FunctionCall], Sql]:
    failure = render_error(RUNAWAY, f"{function_name}() would create a text of more than {MAX_TEXT_BYTES} bytes")

    def render_call_sql(call: ir.FunctionCall) -> Sql:
        if all(map(_has_short_string_form, call.args)):
            return library_function(call)
        texts = [str(translate.render_kql_tostring(each)) for each in call.args]
        sizes = {i: _render_string_size(each) for i, each in enumerate(call.args) if isinstance(each, ir.ColumnRef)}
        bound = [i for i, each in enumerate(call.args) if i not in sizes and not _has_short_string_form(each)]

        def render_call_with_size_check(*argument_names: Sql) -> Sql:
            parts = texts.copy()
            for i, bound_name in zip(bound, argument_names, strict=True):
                parts[i] = bound_name
            total = " + ".join([*filter(None, sizes.values()), *(f"strlen({each})" for each in argument_names)])
            joined = f"{sql_function}({', '.join(parts)})"
            return f"CASE WHEN {total} > {MAX_TEXT_BYTES} THEN {failure} ELSE {joined} END" if total else joined

        return render_with_arguments_evaluated_once([texts[i] for i in bound], render_call_with_size_check)

    return render_call_sql


def _has_short_string_form(expr: ir.Expr) -> bool:
    """Return whether the string form of an expression is always short, as for a constant, a number or a datetime."""
    if isinstance(expr, ir.BinaryOp):
        return expr.op in _ARITHMETIC
    return isinstance(expr, ir.Literal | ir.Parameter) or infer_type(expr) in _SMALL


def _render_string_size(column: ir.ColumnRef) -> Sql:
    """Return SQL for the size in bytes of a column's string form; empty if values of its type are always short.

    The caller compares the sum of the sizes with MAX_TEXT_BYTES, and ignores values that are always short.
    """
    if _has_short_string_form(column):
        return ""
    sql = render_expression(column)
    texts = f"typeof({sql}) IN ('VARCHAR', 'JSON')"
    return f"coalesce(CASE WHEN {texts} THEN strlen(CAST({sql} AS VARCHAR)) END, 0)"


macros: tuple[str, ...] = (
    *_TEXT_MACROS,
    *_IPV4_MACROS,
)


def install_into_translator() -> None:
    """Add functions over strings and IPv4 addresses, and the size limit, to the KQL translator library."""
    _install_string_functions()
    _install_ipv4_functions()
    _install_text_size_checks()
