"""``python -m shared.commands.workspace validate|diff|apply FILE``: the workspace document from the command line.

Exit codes: 0 done; 1 the document has problems, or is refused; 2 wrong usage, an unreadable file, or stores that do not
answer.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from shared.errors import Kind, WorkspaceError

if TYPE_CHECKING:
    from shared.catalog.diff import CatalogPlan, ItemChange

DONE: Final = 0
REFUSED: Final = 1
FAILED: Final = 2


def main(arguments: Sequence[str], services: Callable[[], Any] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        arguments: of the command line, without the program's name.
        services: gives ``catalog_service``, ``query_columns``, ``api_keys`` and ``close``; left out: the service's own
            wiring.
    """
    options = _parser().parse_args(arguments)
    try:
        return asyncio.run(_run(options, services or _wired))
    except WorkspaceError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        return FAILED if error.kind in {Kind.UNAVAILABLE, Kind.TIMEOUT, Kind.THROTTLED} else REFUSED
    except OSError as error:
        print(error, file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="workspace", description="Validate, compare and apply a workspace document.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, summary in (
        ("validate", "check a document; needs no stores"),
        ("diff", "show what apply would change"),
        ("apply", "make the workspace as the document declares it"),
    ):
        command = verbs.add_parser(verb, help=summary, description=summary)
        command.add_argument("file", type=Path, help="the workspace document, YAML")
        command.set_defaults(actor=None, issue_key=None)
        if verb == "apply":
            command.add_argument("--as", dest="actor", metavar="PRINCIPAL", help="the member who applies it")
            command.add_argument(
                "--issue-key", metavar="PRINCIPAL", help="then issue an API key for a member and print it alone, once"
            )
    return parser


async def _run(options: argparse.Namespace, services: Callable[[], Any]) -> int:
    from shared.catalog.document import load_document  # noqa: PLC0415  keeps --help and imports of this module cheap
    from shared.catalog.problems import DocumentError  # noqa: PLC0415  as above

    try:
        text = _text(options.file)
        document = load_document(text, str(options.file))
    except DocumentError as error:
        return _refused(error)
    _warn(document, text, options.file)
    if options.verb == "validate":
        return DONE
    for principal in filter(None, (options.actor, options.issue_key)):
        if principal not in {member.id for member in document.team}:
            print(f"{options.file}: no member of the team is {principal}", file=sys.stderr)
            return REFUSED
    opened = services()
    try:
        if options.verb == "diff":
            _tell(await opened.catalog_service.plan(document), sys.stdout)
        else:
            await _check_queries(document, text, options.file, opened)
            await _apply(document, options, opened)
    except DocumentError as error:
        return _refused(error)
    finally:
        await opened.close()
    return DONE


def _warn(document: Any, text: str, file: Path) -> None:
    from shared.catalog.checks import find_warnings  # noqa: PLC0415  keeps --help and imports of this module cheap
    from shared.catalog.document import locate_findings  # noqa: PLC0415  as above

    if found := list(find_warnings(document)):
        for problem in locate_findings(text, str(file), found).problems:
            print(f"warning: {problem}", file=sys.stderr)


def _refused(error: Any) -> int:
    for problem in error.problems:
        print(problem, file=sys.stderr)
    return REFUSED


async def _check_queries(document: Any, text: str, file: Path, services: Any) -> None:
    from shared.warm_queries.document_checks import check_document_queries  # noqa: PLC0415  keeps imports of this module cheap

    silent = await check_document_queries(document, text, str(file), services.query_columns)
    if silent is not None:
        warning = "warning: the queries are applied without having been tried"
        print(f"{warning}: {silent.detail} ({silent.code})", file=sys.stderr)


async def _apply(document: Any, options: argparse.Namespace, services: Any) -> None:
    actor = options.actor or "apply"
    plan = await services.catalog_service.apply(document, actor)
    _tell(plan, sys.stderr if options.issue_key else sys.stdout)
    if options.issue_key:
        issued = await services.api_keys.issue(actor, options.issue_key, "issued by apply")
        print(issued.api_key)


def _text(path: Path) -> str:
    """Return a file's text.

    Raises:
        DocumentError: it is not UTF-8.
        OSError: it cannot be read.
    """
    from shared.catalog.problems import DocumentError, Problem  # noqa: PLC0415  keeps imports of this module cheap

    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise DocumentError([Problem(str(path), line, column, "", "is not UTF-8")]) from None


def _tell(plan: Any, stream: TextIO) -> None:
    for line in plan_lines(plan):
        print(line, file=stream)


def _wired() -> Any:
    from shared.wiring import services  # noqa: PLC0415  opens settings and adapters only when a verb needs them

    return services()


if __name__ == "__main__":
    # What it makes in a data directory is the operator's own.
    os.umask(os.umask(0o077) | 0o077)
    sys.exit(main(sys.argv[1:]))


ABSENT: Final = object()


def plan_lines(plan: "CatalogPlan") -> Iterator[str]:
    """Yield the lines of a plan, the summary last."""
    for change in plan.changes:
        yield from _change_lines(change)
    for item in plan.retained:
        yield f"{'!' if item.conflict else '='} {item.kind} {item.key}: {item.reason}, stays as it is"
    counts = {sign: sum(_sign(change) == sign for change in plan.changes) for sign in "+~-"}
    yield f"{counts['+']} added, {counts['~']} changed, {counts['-']} removed, {len(plan.retained)} kept"


def _sign(change: "ItemChange") -> str:
    if change.before is None:
        return "+"
    return "-" if change.after is None else "~"


def _change_lines(change: "ItemChange") -> Iterator[str]:
    yield f"{_sign(change)} {change.kind} {change.key}"
    if change.before is not None and change.after is not None:
        for field, before, after in _differences("", change.before, change.after):
            yield from _field_lines(field, before, after)


def _differences(at: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields that differ, by dotted name, as deep as both sides are mappings."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        if before != after:
            yield at, before, after
        return
    for name in dict.fromkeys([*before, *after]):
        yield from _differences(f"{at}.{name}".removeprefix("."), before.get(name, ABSENT), after.get(name, ABSENT))


def _field_lines(field: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield f"    {field}:"
        compared = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
        yield from (f"      {line}" for line in compared[2:])
    else:
        yield f"    {field}: {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    return "(none)" if value is ABSENT else json.dumps(value, ensure_ascii=False)
