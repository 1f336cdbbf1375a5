"""Network addresses of version 4."""

from emulators.kusto.extensions.registry import body
from emulators.kusto.extensions.sql import quoted

SUPPORTED: tuple[str, ...] = ("ipv4_compare", "ipv4_is_in_range", "ipv4_is_match", "ipv4_is_private")

_ADDRESS = r"^\s*(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:/(\d{1,2}))?\s*$"
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")

macros: tuple[str, ...] = (
    # Number and prefix length; null for what is no address.
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


def install() -> None:
    """Teach the translator the functions."""
    body("ipv4_compare", (2, 3), _order)
    body("ipv4_is_match", (2, 3), lambda x, y, p="32": f"({_order(x, y, p)} = 0)")
    body("ipv4_is_in_range", (2,), lambda x, y: f"({_order(x, y)} = 0)")
    body(
        "ipv4_is_private",
        (1,),
        lambda x: "(" + " OR ".join(f"{_order(x, quoted(each))} = 0" for each in _PRIVATE) + ")",
    )


def _order(one: str, other: str, prefix: str = "32") -> str:
    return f"kql_ip_order({one}, {other}, CAST({prefix} AS INTEGER))"
