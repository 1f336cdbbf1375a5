"""``mv-expand`` to texts: its elements are read at once, where the library makes JSON of each and reads that."""

from collections.abc import Callable

from duckdb_kql import ir, translate

from emulators.kusto.extensions.library import replace, writer

macros: tuple[str, ...] = ()


def install() -> None:
    """Write the expansion of a column to texts so; every other one as the library does."""
    replace(translate, "_mv_expand_unnest", _unnest)


def _unnest(default: Callable[[ir.MvExpand, ir.MvExpandTarget], str]) -> Callable[..., str]:
    def unnest(op: ir.MvExpand, target: ir.MvExpandTarget) -> str:
        if target.to_type != "string":
            return default(op, target)
        name = translate.quote_ident(target.name or target.column)
        return f"coalesce(UNNEST({_texts(op, target)}), '') AS {name}"

    return unnest


def _texts(op: ir.MvExpand, target: ir.MvExpandTarget) -> str:
    column = translate.quote_ident(target.column)
    elements = writer.mv_expand_elements(op, target)
    limit = None if op.limit is None else max(op.limit, 0)
    array = f"json_extract_string({column}, '$[*]')"
    if limit is not None:
        array = f"list_slice({array}, 1, {limit})"
    rest = f"list_transform({elements}, lambda _e: _e ->> '$')"
    return f"CASE json_type({column}) WHEN 'ARRAY' THEN {array} ELSE {rest} END"
