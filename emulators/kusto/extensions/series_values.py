"""Series as values: numeric arrays in a ``dynamic``, read into DuckDB lists and written back.

Each SQL macro names each of its parameters once and binds it through a list of one element. A macro writes an argument
out as often as it names the parameter, so nested calls would multiply; and no name inside an argument can meet a name
of the macro that way.
"""

_NUMBERS = "('DOUBLE', 'BIGINT', 'UBIGINT')"


def _contains_any(text: str, *marks: str) -> str:
    """Return SQL that searches a text; this is far cheaper than one regular expression."""
    return "(" + " OR ".join(f"contains({text}, '{mark}')" for mark in marks) + ")"


macros: tuple[str, ...] = (
    # A dynamic number, or a non-finite one by its name.
    f"""CREATE OR REPLACE MACRO kql_number(value) AS list_transform([TRY_CAST(value AS JSON)], lambda _v: CASE
        WHEN json_type(_v) IN {_NUMBERS} THEN CAST(_v AS DOUBLE)
        WHEN CAST(_v AS VARCHAR) IN ('"NaN"', '"Infinity"', '"-Infinity"') THEN CAST(_v ->> '$' AS DOUBLE) END)[1]""",
    # The elements of an array, null where one is no number; null for what is no array. DuckDB would read a text or a
    # truth value as a number, so an array that has one is read element by element.
    f"""CREATE OR REPLACE MACRO kql_numbers(series) AS list_transform([TRY_CAST(series AS JSON)], lambda _j:
        CASE WHEN NOT {_contains_any("CAST(_j AS VARCHAR)", '"', "t", "f")} THEN TRY_CAST(_j AS DOUBLE[])
        WHEN json_type(_j) = 'ARRAY' THEN list_transform(CAST(_j AS JSON[]), lambda _e: kql_number(_e)) END)[1]""",
    # Whether a number, or every number of an array, is an integer.
    f"""CREATE OR REPLACE MACRO kql_whole(series) AS list_transform([CAST(TRY_CAST(series AS JSON) AS VARCHAR)],
        lambda _t: NOT {_contains_any("_t", ".", "e", "E", "N", "I")})[1]""",
    # Reals as a dynamic, the non-finite ones by their names.
    f"""CREATE OR REPLACE MACRO kql_series(numbers) AS list_transform([to_json(numbers)], lambda _t:
        CASE WHEN {_contains_any("CAST(_t AS VARCHAR)", "N", "I")} THEN
        CAST(regexp_replace(CAST(_t AS VARCHAR), '-?(NaN|Infinity)', '"\\0"', 'g') AS JSON) ELSE _t END)[1]""",
    # Numbers as integers where they came from integers.
    """CREATE OR REPLACE MACRO kql_same_kind(numbers, whole) AS list_transform(
        [struct_pack(n := numbers, w := whole)], lambda _k: CASE
        WHEN _k.w THEN to_json(CAST(_k.n AS BIGINT[])) ELSE kql_series(_k.n) END)[1]""",
    # Two operands of an element-wise function, and whether both are integers; a number is as long as the array.
    """CREATE OR REPLACE MACRO kql_operands(one, other) AS list_transform(list_transform(
        [struct_pack(one := TRY_CAST(one AS JSON), other := TRY_CAST(other AS JSON))],
        lambda _a: struct_pack(a := kql_numbers(_a.one), b := kql_numbers(_a.other), x := kql_number(_a.one),
            y := kql_number(_a.other), w := kql_whole(_a.one) AND kql_whole(_a.other))),
        lambda _o: struct_pack(
            a := CASE WHEN _o.x IS NULL THEN _o.a ELSE list_resize([_o.x], len(_o.b), _o.x) END,
            b := CASE WHEN _o.y IS NULL THEN _o.b ELSE list_resize([_o.y], len(_o.a), _o.y) END, w := _o.w))[1]""",
)


def install() -> None:
    """Do nothing: no query names these macros."""
