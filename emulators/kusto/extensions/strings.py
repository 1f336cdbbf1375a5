"""Texts: searching, splitting, replacing, parsing, encoding."""

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError

from emulators.kusto.extensions.registry import body, form, template, text_argument
from emulators.kusto.extensions.sql import once, quoted, render

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
)

_CSV_RECORD = r'^(?:"(?:[^"]|"")*"|[^"\r\n])*'
_CSV_FIELD = r'((?:"(?:[^"]|"")*"|[^,"])*),'
_PATH = r"^(?:([A-Za-z][A-Za-z0-9+.\-]*)://)?(([A-Za-z]:)?(?:.*[/\\])?)([^/\\:]*)(?::(.*))?$"

macros: tuple[str, ...] = (
    (
        "CREATE OR REPLACE MACRO kql_csv(t) AS "
        f"to_json(list_transform(regexp_extract_all(regexp_extract(t, {quoted(_CSV_RECORD)}) "
        f"|| ',', {quoted(_CSV_FIELD)}, 1), lambda _f: CASE WHEN starts_with(_f, '\"') AND ends_with(_f, "
        "'\"') AND length(_f) > 1 "
        "THEN replace(_f[2:-2], '\"\"', '\"') ELSE _f END))"
    ),
    (
        f"CREATE OR REPLACE MACRO kql_path(t) AS list_transform([regexp_extract(t, {quoted(_PATH)}, "
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
    # In the order of the lookups, each match behind a character of private use until the last is found: what was put in
    # place of one is not searched for the next.
    (
        "CREATE OR REPLACE MACRO kql_replaced(t, l, r) AS list_reduce(list_prepend(list_reduce(list_prepend(t, l), "
        "lambda _t, _l, _i: CASE WHEN _l <> '' THEN replace(_t, _l, chr(CAST(983040 + _i AS INTEGER))) ELSE _t END), "
        "list_transform(l, lambda _l, _i: coalesce(r[_i], _l, ''))), "
        "lambda _t, _r, _i: replace(_t, chr(CAST(983040 + _i AS INTEGER)), _r))"
    ),
)


def install() -> None:
    """Teach the translator the functions."""
    body("strcmp", (2,), lambda a, b: f"CASE WHEN {a} < {b} THEN -1 WHEN {a} > {b} THEN 1 WHEN {a} = {b} THEN 0 END")
    template("string_size", "CAST(octet_length(encode({0})) AS BIGINT)", 1)
    template("regex_quote", "regexp_escape({0})", 1)
    template("isascii", "regexp_full_match({0}, '[[:ascii:]]*')", 1)
    template("base64_encode_tostring", "to_base64(encode({0}))", 1)
    template("base64_decode_tostring", "coalesce(TRY(decode(from_base64({0}))), '')", 1)
    template("parse_csv", "kql_csv({0})", 1)
    template("parse_path", "kql_path({0})", 1)
    body("parse_version", (1,), lambda text: f"kql_version({text})")
    template("url_decode", "url_decode(replace({0}, '+', ' '))", 1)
    template("url_encode", "replace(kql_url({0}), '%20', '+')", 1)
    template("url_encode_component", "kql_url({0})", 1)
    form("indexof", (2, 3, 4, 5), _indexof)
    form("split", (2, 3), _split)
    body("translate", (3,), _translate)
    form("replace_strings", (3,), _replace_strings)
    form("strrep", (2, 3), _strrep)
    form("parse_urlquery", (1,), _parse_urlquery)
    form("has_any_index", (2,), _has_any_index)
    template("unicode_codepoints_from_string", "to_json(list_transform(str_split({0}, ''), lambda _c: unicode(_c)))", 1)
    template(
        "unicode_codepoints_to_string",
        "array_to_string(list_transform(CAST(to_json({0}) AS INTEGER[]), lambda _c: chr(_c)), '')",
        1,
    )


def _indexof(call: ir.FunctionCall) -> str:
    if len(call.args) == 5 and not _unlimited(call.args[3]):  # noqa: PLR2004
        raise KqlUnsupportedError("indexof() with both a length and an occurrence")
    texts = [text_argument(arg) for arg in call.args[:2]]
    return once([*texts, *map(render, call.args[2:])], _position)


def _unlimited(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Literal) and expr.value == -1


def _position(text: str, match: str, start: str = "0", length: str = "-1", occurrence: str = "1") -> str:
    first = f"CASE WHEN {start} < 0 THEN length({text}) + {start} ELSE {start} END"
    taken = f"CASE WHEN {length} < 0 THEN length({text}) ELSE {length} END"
    part = f"substr({text}, ({first}) + 1, {taken})"
    if occurrence == "1":
        found = f"position({match} IN {part}) - 1"
    else:
        starts = f"range(0, length({part}) - length({match}) + 1)"
        hits = f"list_filter({starts}, lambda _i: substr({part}, _i + 1, length({match})) = {match})"
        found = f"coalesce({hits}[{occurrence}], -1)"
    at = f"list_transform([CAST({found} AS BIGINT)], lambda _f: CASE WHEN _f < 0 THEN -1 ELSE _f + ({first}) END)[1]"
    return f"CASE WHEN ({first}) < 0 OR {length} < -1 OR {occurrence} < 0 THEN NULL ELSE {at} END"


def _split(call: ir.FunctionCall) -> str:
    parts = f"str_split({text_argument(call.args[0])}, {render(call.args[1])})"
    if len(call.args) == 2:  # noqa: PLR2004
        return f"to_json({parts})"
    index = render(call.args[2])
    return once(
        [parts, index],
        lambda p, i: (
            f"CASE WHEN {i} BETWEEN 0 AND len({p}) - 1 THEN to_json([{p}[{i} + 1]]) ELSE to_json([]::VARCHAR[]) END"
        ),
    )


def _translate(search: str, replacement: str, source: str) -> str:
    # A list of replacements that is too short goes on with its last character, an empty one deletes.
    padded = (
        f"rpad({replacement}, CAST(greatest(length({search}), length({replacement})) AS INTEGER), "
        f"right({replacement}, 1))"
    )
    return (
        f"CASE WHEN {replacement} = '' THEN translate({source}, {search}, '') ELSE translate({source}, "
        f"{search}, {padded}) END"
    )


def _replace_strings(call: ir.FunctionCall) -> str:
    text, *lists = call.args
    texts = [
        f"list_transform(CAST(to_json({render(each)}) AS JSON[]), lambda _t: CASE WHEN json_type(_t) = "
        "'VARCHAR' THEN _t ->> '$' END)"
        for each in lists
    ]
    return once([render(text), *texts], lambda text, lookups, rewrites: f"kql_replaced({text}, {lookups}, {rewrites})")


def _strrep(call: ir.FunctionCall) -> str:
    # One long text at once: a list of its parts would hold all of them beside it.
    value, delimiter = text_argument(call.args[0]), text_argument(call.args[2]) if len(call.args) > 2 else ""  # noqa: PLR2004
    count = f"CAST({render(call.args[1])} AS BIGINT)"
    if not delimiter:
        return f"repeat({value}, {count})"
    return once([delimiter], lambda text: f"substr(repeat({text} || {value}, {count}), length({text}) + 1)")


def _parse_urlquery(call: ir.FunctionCall) -> str:
    url = ir.FunctionCall("strcat", (ir.Literal("a://b?", "string"), call.args[0]))
    parsed = render(ir.FunctionCall("parse_url", (url,)))
    return f"json_object('Query Parameters', json_extract({parsed}, '$.\"Query Parameters\"'))"


def _has_any_index(call: ir.FunctionCall) -> str:
    from duckdb_kql.translate.functions import term_match_sql  # noqa: PLC0415

    words = f"CAST(to_json({render(call.args[1])}) AS VARCHAR[])"
    return once(
        [render(call.args[0]), words],
        lambda text, list_: (
            f"coalesce(list_filter(range(0, len({list_})), lambda _i: "
            f"{term_match_sql(text, f'{list_}[_i + 1]')})[1], -1)"
        ),
    )
