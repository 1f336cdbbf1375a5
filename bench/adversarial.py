"""Attacks: the most expensive requests that the size limits of the service allow, for benchmarks and load tests."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from shared.text_formats.strict_json import MAX_CONTAINERS

KIB: Final = 1_024
MIB: Final = 1_024 * KIB
KQL_LENGTH: Final = 65_000
DEEP: Final = 20_000

_AD_HOC: Final = "/oi-api/warm-queries"
_AD_HOC_TOOL: Final = "run_adhoc_query"
_AMENDMENTS: Final = "/oi-api/provenance/amendments"
_MCP_PATH: Final = "/oi-api/mcp"
_GRAPHQL: Final = "/v1/bench/graphql"


@dataclass(frozen=True, slots=True)
class Attack:
    """Request, valid or invalid, that costs the service as much time as possible.

    Attributes:
        name: unique name of the attack, in words with hyphens.
        method: HTTP method.
        path: path and query of the URL.
        body: body of the request; empty for a request without a body.
        headers: request headers other than those for authentication and content type.
        must_be_rejected: True if only a 4xx reply is correct.
    """

    name: str
    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    must_be_rejected: bool = False


def build_attacks() -> tuple[Attack, ...]:
    """Build all attacks (expensive requests) on the workspace in ``bench/workspace.yaml``."""
    return (
        *build_kql_attacks(),
        *build_nesting_attacks(),
        *build_large_body_attacks(),
        *build_graphql_attacks(),
        *build_header_attacks(),
        *build_large_reply_attacks(),
        *build_mcp_attacks(),
    )


def build_hostile_kql_by_attack_name() -> Mapping[str, str]:
    """Return, by attack name, KQL texts of the maximum length that take the lexer a long time."""
    units = {
        "open-strings": '"\\',
        "open-single-strings": "'\\",
        "verbatim-strings": '@"',
        "fences": "```",
        "lines-of-quotes": '"\n',
        "unions": "union ",
        "lets": "let ",
        "brackets": "(",
        "semicolons": ";",
        "empty-strings": "''",
    }
    return {name: "print " + (unit * KQL_LENGTH)[: KQL_LENGTH - 6] for name, unit in units.items()}


def build_kql_attacks() -> list[Attack]:
    """Build requests with hostile KQL texts: ad-hoc queries with and without time range, saved queries, MCP calls."""
    found: list[Attack] = []
    for name, kql in build_hostile_kql_by_attack_name().items():
        put = {"name": "Hostile", "surface": "hall", "kql": kql}
        found += [
            Attack(f"ad-hoc-{name}", "POST", _AD_HOC, _to_json_bytes({"query": kql})),
            Attack(f"time-range-{name}", "POST", _AD_HOC, _to_json_bytes({"query": kql, "timeRange": "P1D"})),
            Attack(f"put-{name}", "PUT", "/oi-api/warm-queries/hostile", _to_json_bytes(put)),
            Attack(f"mcp-{name}", "POST", _MCP_PATH, _build_tool_call_body(_AD_HOC_TOOL, {"query": kql}), _MCP),
        ]
    return found


def build_nesting_attacks() -> list[Attack]:
    """Build requests with JSON values, KQL expressions and GraphQL documents that nest thousands of levels."""
    deep = "[" * DEEP + "]" * DEEP
    texts = {
        "parse-json": f"print parse_json('{deep}')",
        "dynamic": f"print dynamic({deep[DEEP // 2 : -DEEP // 2]})",
        "parentheses": f"print {'(' * DEEP}1{')' * DEEP}",
        "not": "print " + "not(" * (DEEP // 2) + "true" + ")" * (DEEP // 2),
        "minus": "print " + "-" * DEEP + "1",
        "parse-json-5000": f"print parse_json('{'[' * 5_000}{']' * 5_000}')",
        "parse-json-300": f"print parse_json('{'[' * 300}{']' * 300}')",
        "objects": "print parse_json('" + '{"a":' * 10_000 + "1" + "}" * 10_000 + "')",
    }
    found = [Attack(f"deep-{name}", "POST", _AD_HOC, _to_json_bytes({"query": kql})) for name, kql in texts.items()]
    found += [
        Attack("deep-body", "POST", "/oi-api/telemetry/line", b"[" * (MIB - 1), must_be_rejected=True),
        Attack("deep-mcp", "POST", _MCP_PATH, b'{"a":' * 100_000, _MCP, must_be_rejected=True),
        Attack("deep-graphql", "POST", _GRAPHQL, _to_json_bytes({"query": "{" + "workspace{" * 2_000})),
        Attack("deep-graphql-list", "POST", _GRAPHQL, _to_json_bytes({"query": "{a(b:" + "[" * 4_900})),
        Attack("deep-variables", "POST", _GRAPHQL, b'{"query":"{workspace{id}}","variables":{"a":%b}}' % deep.encode()),
    ]
    return found


def build_large_body_attacks() -> list[Attack]:
    """Build requests with bodies of the maximum size that contain the maximum number of values."""
    documents = "/oi-api/data-stores/mes/databases/orders/tables/workorders"
    event = {"ScopeKey": "line", "EntityType": "Pump", "EntityID": "p", "ActionType": "Update"}
    found = []
    for name, unit in _VALUES.items():
        array, whole, twice = (
            _build_json_array_of_equal_elements(unit, size) for size in (250 * KIB, MIB - 4 * KIB, 2 * MIB - 4 * KIB)
        )
        given = _to_json_bytes(event)[:-1].decode()
        found += [
            Attack(f"telemetry-{name}", "POST", "/oi-api/telemetry/line", f'{{"v":{array}}}'.encode()),
            Attack(f"telemetry-array-{name}", "POST", "/oi-api/telemetry/line", whole.encode()),
            Attack(
                f"document-{name}", "PUT", f"{documents}/big?partitionKey=a", _build_document_body_with_value(twice)
            ),
            Attack(
                f"event-{name}", "POST", "/oi-api/provenance/events", f'{given},"AfterState":{{"v":{whole}}}}}'.encode()
            ),
            Attack(f"graphql-{name}", "POST", _GRAPHQL, _build_graphql_body_with_variable(whole)),
            Attack(f"mcp-{name}", "POST", _MCP_PATH, _build_tool_call_body_with_value(whole), _MCP),
        ]
    messages = [{"messageId": f"m{number}", "value": number, "text": "x" * 1_900} for number in range(500)]
    return [
        *found,
        Attack("telemetry-500", "POST", "/oi-api/telemetry/line", _to_json_bytes(messages)),
        *_build_list_attacks(),
        *_build_json_lines_attacks(),
    ]


def _build_list_attacks() -> list[Attack]:
    """Build invalid requests with lists of the maximum length; the last item of each list is a duplicate."""
    scopes = [{"target": "DomainEvents", "scopeKey": f"line-{number}"} for number in range(999)]
    columns = [f"c{number}" for number in range(9_900)]
    mapping = {"timestamp": "at", "columns": [*columns, columns[-1]]}
    lists = {
        "bundle-scopes": ("/oi-api/provenance/bundles", {"scopes": [*scopes, scopes[-1]]}),
        "import-columns": (
            "/oi-api/imports/data-connections/line",
            {"format": "csv", "fileName": "hostile.csv", "mapping": mapping},
        ),
    }
    return [
        Attack(name, "POST", path, _to_json_bytes(body), must_be_rejected=True) for name, (path, body) in lists.items()
    ]


def _build_json_lines_attacks() -> list[Attack]:
    """Build compressed NDJSON bodies of the maximum size whose messages are slow to parse and to write."""
    values = {"integers": "9" * 4_300, "arrays": "[]", "deep": "[" * 90 + "]" * 90, "members": '{"a":0}'}
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    found = []
    for name, unit in values.items():
        for size in (250 * KIB, 25 * KIB):
            line = f'{{"a":{_build_json_array_of_equal_elements(unit, size)}}}\n'.encode()
            body = gzip.compress(line * (16 * MIB // len(line)))
            found.append(Attack(f"lines-{name}-{size // KIB}", "POST", "/oi-api/telemetry/line", body, headers))
    return found


def _build_json_array_of_equal_elements(element_json: str, max_bytes: int) -> str:
    """Build a JSON array of equal values of at most ``max_bytes`` bytes.

    It contains at most as many arrays and objects as the service permits in one body.
    """
    containers = element_json.count("[") + element_json.count("{")
    times = min(max_bytes // (len(element_json) + 1), (MAX_CONTAINERS - 100) // containers if containers else max_bytes)
    return "[" + ",".join([element_json] * times) + "]"


def build_graphql_attacks() -> list[Attack]:
    """Build GraphQL documents of 5,000 tokens that are slow to parse, to validate or to execute."""
    spreads = "".join(f"fragment f{n} on Workspace{{id ...f{n + 1}}}" for n in range(550))
    documents = {
        "fields": "{workspace{" + "id " * 4_900 + "}}",
        "unknown": "{" + "nothing " * 4_900 + "}",
        "fragments": "{workspace{...f0}}" + spreads + "fragment f550 on Workspace{id}",
        "inline": "{workspace{" + "...{id}" * 1_200 + "}}",
        "arguments": "{" + "".join(f"queries(page:{n}){{name}} " for n in range(500)) + "}",
        "variables": "query(" + "".join(f"$a{n}:Int " for n in range(1_200)) + "){workspace{id}}",
        "directives": "{workspace{" + "id @skip(if:true) " * 600 + "}}",
        "long-text": "#" + "x" * (MIB - 100) + "\n{workspace{id}}",
        "introspection": "{__schema{types{fields{type{fields{type{fields{name}}}}}}}}",
    }
    return [
        Attack(f"graphql-{name}", "POST", _GRAPHQL, _to_json_bytes({"query": text})) for name, text in documents.items()
    ]


def build_header_attacks() -> list[Attack]:
    """Build requests with URLs and headers of the maximum size."""
    tags = ",".join('"x"' for _ in range(16_000))
    parameters = "&".join(f"p.a{n}={quote('é' * 20)}" for n in range(199))
    return [
        Attack("many-parameters", "GET", f"/oi-api/warm-queries/newest?{parameters}"),
        Attack("long-target", "GET", "/oi-api/warm-queries/" + "%2e" * 10_000),
        Attack("many-tags", "GET", "/oi-api/warm-queries/newest", headers={"If-None-Match": tags}),
        Attack("long-accept", "GET", "/oi-api/warm-queries", headers={"Accept": "a/b;q=0.1," * 6_000}),
        Attack("long-prefer", "GET", "/oi-api/warm-queries", headers={"Prefer": "wait =" + " " * 60_000}),
        Attack("long-encoding", "GET", "/oi-api/openapi", headers={"Accept-Encoding": "x;q=0," * 10_000}),
        Attack("long-authorization", "GET", "/oi-api/openapi", headers={"X-Long": "a." * 60_000}),
    ]


def build_large_reply_attacks() -> list[Attack]:
    """Build requests with the largest possible replies."""
    wide = "range x from 1 to 10000 step 1 | extend a = strcat('{0}', tostring(x)), d = dynamic([1,2,3]), t = now()"
    rows, large = wide.format("x" * 20), wide.format("x" * 2_000)
    chain = "target=DomainEvents&scopeKey=line"
    found = [Attack("openapi", "GET", "/oi-api/openapi"), Attack("queries", "GET", "/oi-api/warm-queries")]
    for form in ("application/json", "text/csv", "application/vnd.apache.parquet"):
        body, large_body = (_to_json_bytes({"query": kql, "limit": 10_000}) for kql in (rows, large))
        name = form.rpartition("/")[2]
        found += [
            Attack(f"rows-{name}", "POST", _AD_HOC, body, {"Accept": form}),
            Attack(f"large-rows-{name}", "POST", _AD_HOC, large_body, {"Accept": form}),
        ]
    return [
        *found,
        Attack("export", "GET", f"/oi-api/provenance/events/export?{chain}&limit=100000"),
        Attack("export-csv", "GET", f"/oi-api/provenance/events/export?{chain}&format=csv&limit=100000"),
        Attack("query-events", "GET", f"/oi-api/provenance/events/query?{chain}&limit=1000"),
        Attack("verify", "POST", "/oi-api/provenance/events/verify", b'{"ScopeKey":"line"}'),
        Attack(
            "report",
            "GET",
            "/oi-api/provenance/amendments/chain?scopeKey=line&entityId=p",
            headers={"Accept": "text/html"},
        ),
    ]


def build_mcp_attacks() -> list[Attack]:
    """Build MCP requests that return the largest possible results.

    Requests that store the data of these results come first in the list.
    """
    amendment = {
        "ScopeKey": "line",
        "EntityType": "Pump",
        "EntityID": "p",
        "OriginalRecord": {},
        "ChangedFields": ["v"],
        "ReasonCategory": "other",
        "ReasonText": "large",
    }
    values = _build_json_array_of_equal_elements(_VALUES["members"], MIB - 4 * KIB)
    body = f'{_to_json_bytes(amendment)[:-1].decode()},"AmendedRecord":{{"v":{values}}}}}'.encode()
    definition = {"name": "Large", "surface": "hall", "kql": "print '" + '"' * 65_000 + "'"}
    rows = "range x from 1 to 10000 step 1 | extend a = strrep('\"', {0}), d = dynamic([1,2,3]), t = now()"
    tools: dict[str, tuple[str, dict[str, object]]] = {
        "rows": (_AD_HOC_TOOL, {"query": rows.format(100), "limit": 10_000}),
        "large-rows": (_AD_HOC_TOOL, {"query": rows.format(1_000), "limit": 10_000}),
        "long-text": (_AD_HOC_TOOL, {"query": f"{rows.format(100)} | summarize strcat_array(make_list(a), '')"}),
        # Each amendment has about 0.8 MiB.
        "pending-decisions": ("list_pending_decisions", {"limit": 4}),
        "all-pending-decisions": ("list_pending_decisions", {"limit": 1_000}),
        "amendments": ("list_amendments", {"scopeKey": "line", "limit": 4}),
    }
    read = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "workspace://warm-queries/large"}}
    return [
        *(Attack(f"amendment-{number}", "POST", _AMENDMENTS, body) for number in range(6)),
        Attack("put-large", "PUT", f"{_AD_HOC}/large", _to_json_bytes(definition)),
        *(
            Attack(f"mcp-result-{name}", "POST", _MCP_PATH, _build_tool_call_body(tool, arguments), _MCP)
            for name, (tool, arguments) in tools.items()
        ),
        Attack("mcp-result-resource", "POST", _MCP_PATH, _to_json_bytes(read), _MCP),
    ]


_VALUES: Final = {
    "numbers": "0",
    "floats": "1.5e9",
    "strings": '""',
    "escapes": '"\\u00e9"',
    "arrays": "[]",
    "objects": "{}",
    "members": '{"a":0}',
    "deep": "[" * 90 + "]" * 90,
}
_MCP: Final = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


def _to_json_bytes(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _build_tool_call_body(tool_name: str, arguments: Mapping[str, object]) -> bytes:
    parameters = {"name": tool_name, "arguments": arguments}
    return _to_json_bytes({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters})


def _build_tool_call_body_with_value(value_json: str) -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":%b}}}'
        % value_json.encode()
    )


def _build_document_body_with_value(value_json: str) -> bytes:
    return b'{"id":"big","line":"a","v":%b}' % value_json[: 2 * MIB].encode()


def _build_graphql_body_with_variable(value_json: str) -> bytes:
    return b'{"query":"{workspace{id}}","variables":{"a":%b}}' % value_json.encode()
