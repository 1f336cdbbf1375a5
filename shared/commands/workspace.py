"""Command ``python -m shared.commands.workspace validate|diff|apply FILE`` for workspace documents.

Exit codes: 0 success; 1 the document has problems or is rejected; 2 wrong usage, unreadable file, or unavailable
stores.
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
        arguments: command-line arguments without the program's name.
        services: returns the services of the app, or a replacement with the same members that this command uses; None
            uses the services of the process.
    """
    options = _build_parser().parse_args(arguments)
    try:
        return asyncio.run(_run(options, services or _load_services))
    except WorkspaceError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        return FAILED if error.kind in {Kind.UNAVAILABLE, Kind.TIMEOUT, Kind.THROTTLED} else REFUSED
    except OSError as error:
        print(error, file=sys.stderr)
        return FAILED


def _build_parser() -> argparse.ArgumentParser:
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
    from shared.catalog.document import load_document  # noqa: PLC0415  avoids slow imports for --help
    from shared.catalog.problems import DocumentError  # noqa: PLC0415  as above

    try:
        text = _read_text(options.file)
        document = load_document(text, str(options.file))
    except DocumentError as error:
        return _print_problems(error)
    _print_warnings(document, text, options.file)
    if options.verb == "validate":
        return DONE
    for principal in filter(None, (options.actor, options.issue_key)):
        if principal not in {member.id for member in document.team}:
            print(f"{options.file}: {principal} is not a member of the team", file=sys.stderr)
            return REFUSED
    running = services()
    try:
        if options.verb == "diff":
            _print_plan(await running.provenance.catalog_service.plan(document), sys.stdout)
        else:
            await _check_queries(document, text, options.file, running)
            await _apply(document, options, running)
    except DocumentError as error:
        return _print_problems(error)
    finally:
        await running.close()
    return DONE


def _print_warnings(document: Any, text: str, file: Path) -> None:
    from shared.catalog.checks import find_warnings  # noqa: PLC0415  avoids slow imports for --help
    from shared.catalog.document import locate_findings  # noqa: PLC0415  as above

    if found := list(find_warnings(document)):
        for problem in locate_findings(text, str(file), found).problems:
            print(f"warning: {problem}", file=sys.stderr)


def _print_problems(error: Any) -> int:
    for problem in error.problems:
        print(problem, file=sys.stderr)
    return REFUSED


async def _check_queries(document: Any, text: str, file: Path, services: Any) -> None:
    from shared.warm_queries.document_checks import check_document_queries  # noqa: PLC0415  avoids a slow import

    outage = await check_document_queries(document, text, str(file), services.queries.columns)
    if outage is not None:
        warning = "warning: the queries are applied without validation by the engine"
        print(f"{warning}: {outage.detail} ({outage.code})", file=sys.stderr)


async def _apply(document: Any, options: argparse.Namespace, services: Any) -> None:
    actor = options.actor or "apply"
    plan = await services.provenance.catalog_service.apply(document, actor)
    _print_plan(plan, sys.stderr if options.issue_key else sys.stdout)
    if options.issue_key:
        issued = await services.access.api_keys.issue(actor, options.issue_key, "issued by apply")
        print(issued.api_key)


def _read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        DocumentError: if the file is not UTF-8.
        OSError: if the file cannot be read.
    """
    from shared.catalog.problems import DocumentError, Problem  # noqa: PLC0415  avoids a slow import

    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise DocumentError([Problem(str(path), line, column, "", "is not UTF-8")]) from None


def _print_plan(plan: Any, stream: TextIO) -> None:
    for line in format_plan(plan):
        print(line, file=stream)


def _load_services() -> Any:
    from shared.wiring import services  # noqa: PLC0415  opens settings and adapters only when a verb needs them

    return services()


MISSING: Final = object()


def format_plan(plan: "CatalogPlan") -> Iterator[str]:
    """Yield a plan's lines: ``+`` added, ``~`` changed, ``-`` removed, ``=`` kept, ``!`` conflict; then a summary."""
    for change in plan.changes:
        yield from _format_change(change)
    for item in plan.retained:
        yield f"{'!' if item.conflict else '='} {item.kind} {item.key}: {item.reason}, unchanged"
    counts = {sign: sum(_change_sign(change) == sign for change in plan.changes) for sign in "+~-"}
    yield f"{counts['+']} added, {counts['~']} changed, {counts['-']} removed, {len(plan.retained)} kept"


def _change_sign(change: "ItemChange") -> str:
    if change.before is None:
        return "+"
    return "-" if change.after is None else "~"


def _format_change(change: "ItemChange") -> Iterator[str]:
    yield f"{_change_sign(change)} {change.kind} {change.key}"
    if change.before is not None and change.after is not None:
        for field, before, after in _find_differences("", change.before, change.after):
            yield from _format_field(field, before, after)


def _find_differences(at: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields that differ, by dotted name, at any depth of mappings."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        if before != after:
            yield at, before, after
        return
    for name in dict.fromkeys([*before, *after]):
        yield from _find_differences(
            f"{at}.{name}".removeprefix("."), before.get(name, MISSING), after.get(name, MISSING)
        )


def _format_field(field: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield f"    {field}:"
        compared = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
        yield from (f"      {line}" for line in compared[2:])
    else:
        yield f"    {field}: {_format_value(before)} -> {_format_value(after)}"


def _format_value(value: Any) -> str:
    return "(none)" if value is MISSING else json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    # Files that the command creates in a data directory are private to the operator.
    os.umask(os.umask(0o077) | 0o077)
    sys.exit(main(sys.argv[1:]))
