"""Command ``python -m shared.commands.workspace validate|diff|apply FILE`` and ``export`` for workspace documents.

The command uses the stores of the service, or with ``--url`` a running service over HTTPS. Exit codes: 0 success; 1 the
document has problems or is rejected; 2 wrong usage, unreadable file, or unavailable stores or service.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import ServiceUser
from shared.text_formats.json_comparison import is_same_json

if TYPE_CHECKING:
    from shared.catalog.alert_rule_checks import QueryUse
    from shared.catalog.diff import CatalogPlan, ItemChange
    from shared.catalog.document import LoadedDocument
    from shared.catalog.ports import StoredCatalog
    from shared.catalog.problems import Violation

DONE: Final = 0
REFUSED: Final = 1
FAILED: Final = 2


type ExitCode = int
"""0 success; 1 problems in the document, or rejected; 2 wrong usage, or unavailable stores or service."""


def main(arguments: Sequence[str], services: Callable[[], Any] | None = None) -> ExitCode:
    """Run the command and return its exit code.

    Args:
        arguments: command-line arguments without the program's name.
        services: returns the services of the app, or a test's object with the same attributes; None for the services of
            the process.
    """
    parser = _build_argument_parser()
    options = parser.parse_args(arguments)
    if options.url and (options.actor or options.issue_key):
        parser.error("--as and --issue-key cannot be used with --url; the owner of the API key applies the document")
    try:
        if options.url:
            return _run_over_https(options)
        if options.verb == "export":
            return asyncio.run(_export_document(options, services or _load_services))
        return asyncio.run(_run_with_stores(options, services or _load_services))
    except WorkspaceError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        return FAILED if error.kind in {Kind.UNAVAILABLE, Kind.TIMEOUT, Kind.THROTTLED} else REFUSED
    except OSError as error:
        print(error, file=sys.stderr)
        return FAILED


def _build_argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="workspace", description="Validate, compare and apply a workspace document.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, summary in (
        ("validate", "check a document; needs no stores"),
        ("diff", "show what apply would change"),
        ("apply", "change the workspace to match the document"),
        ("export", "print the whole workspace as a document"),
    ):
        command = verbs.add_parser(verb, help=summary, description=summary)
        command.set_defaults(actor=None, issue_key=None)
        command.add_argument("--url", help="use the service at this URL, with the API key in OI_KEY")
        command.add_argument("--key-file", type=Path, metavar="FILE", help="file with the API key for --url")
        if verb == "export":
            command.add_argument("--format", choices=("yaml", "json"), default="yaml", help="default: yaml")
            continue
        command.add_argument("file", type=Path, help="the workspace document, YAML")
        if verb == "apply":
            command.add_argument("--as", dest="actor", metavar="PRINCIPAL", help="the member who applies the document")
            command.add_argument(
                "--issue-key", metavar="PRINCIPAL", help="then issue an API key for a member; print only the key"
            )
    return parser


async def _run_with_stores(options: argparse.Namespace, services: Callable[[], Any]) -> ExitCode:
    from shared.catalog.checks import (  # noqa: PLC0415  avoids slow imports for --help
        iterate_member_id_warnings,
        iterate_unknown_query_warnings,
    )
    from shared.catalog.document import (  # noqa: PLC0415  as above
        decode_document,
        load_document_with_positions,
    )
    from shared.catalog.problems import DocumentError  # noqa: PLC0415  as above

    try:
        source = str(options.file)
        text = decode_document(options.file.read_bytes(), source)
        # Stored approvals stay valid if their approver can no longer approve, and stored members keep reserved ids.
        loaded = load_document_with_positions(text, source, checks_new_items=options.verb == "validate")
    except DocumentError as error:
        return _print_document_problems(error)
    document = loaded.document
    # They need no plan, so a command that fails later prints them, too.
    _print_warnings(loaded, iterate_member_id_warnings(document))
    if options.verb == "validate":
        _print_warnings(loaded, iterate_unknown_query_warnings(document))
        return _check_declared_queries_of_rules(loaded)
    running = services()
    try:
        uses = await _check_new_items_and_list_query_uses(loaded, running)
        if options.verb == "diff":
            plan = await running.provenance.catalog_service.plan(document)
            _print_warnings(loaded, iterate_unknown_query_warnings(document, plan.retained_query_lookups))
            _print_plan(plan, sys.stdout)
        else:
            principals = [each for each in (options.actor, options.issue_key) if each]
            await _require_members_after_apply(principals, document, source, running)
            await _check_queries_and_rules_with_engine(loaded, uses, running)
            await _apply_document(loaded, options, running)
    except DocumentError as error:
        return _print_document_problems(error)
    finally:
        await running.close()
    return DONE


def _print_warnings(loaded: "LoadedDocument", warnings: "Iterable[Violation]") -> None:
    if found := list(warnings):
        for problem in loaded.build_error_with_positions(found).problems:
            print(f"warning: {problem}", file=sys.stderr)


def _check_declared_queries_of_rules(loaded: "LoadedDocument") -> ExitCode:
    """Check all alert rules of a document against the queries that it declares; stored items are not read."""
    from shared.catalog.ports import StoredCatalog  # noqa: PLC0415  avoids slow imports for --help
    from shared.catalog.problems import DocumentError  # noqa: PLC0415  as above

    try:
        _list_query_uses_of_rules(loaded, StoredCatalog(0, ()))
    except DocumentError as error:
        return _print_document_problems(error)
    return DONE


def _list_query_uses_of_rules(loaded: "LoadedDocument", stored: "StoredCatalog") -> "list[QueryUse]":
    """Return the new and changed uses of queries by alert rules, after checks that need no query engine.

    Raises:
        DocumentError: a rule has parameters or a time range that its query does not accept.
        WorkspaceError: the errors of :func:`shared.catalog.document_plans.plan_document_for_command_line`.
    """
    from shared.catalog.alert_rule_checks import iterate_query_use_errors, list_new_query_uses  # noqa: PLC0415  avoids slow imports for --help
    from shared.catalog.document_plans import plan_document_for_command_line  # noqa: PLC0415  as above
    from shared.catalog.problems import MAX_PROBLEMS  # noqa: PLC0415  as above

    plan = plan_document_for_command_line(loaded.document, stored)
    uses = list_new_query_uses(loaded.document, stored, plan.changes)
    # An unknown query is a warning, because it can be created through the API later.
    if errors := list(islice(iterate_query_use_errors(uses, must_exist=False), MAX_PROBLEMS)):
        raise loaded.build_error_with_positions(errors)
    return uses


def _print_document_problems(error: Any) -> ExitCode:
    for problem in error.problems:
        print(problem, file=sys.stderr)
    return REFUSED


async def _check_queries_and_rules_with_engine(loaded: "LoadedDocument", uses: "list[QueryUse]", services: Any) -> None:
    from shared.alerts.document_checks import check_document_rules_and_return_outage  # noqa: PLC0415  avoids a slow import
    from shared.warm_queries.document_checks import check_document_queries_and_return_outage  # noqa: PLC0415  avoids a slow import

    outage = await check_document_queries_and_return_outage(loaded, services.queries.columns, runtime=services.runtime)
    checked = [use for use in uses if use.query is not None]
    if outage is not None:
        warning = "warning: the queries are applied without validation by the engine"
        print(f"{warning}: {outage.detail} ({outage.code})", file=sys.stderr)
        if not checked:
            return
    else:
        outage = await check_document_rules_and_return_outage(
            loaded, checked, services.queries.columns, runtime=services.runtime
        )
    if outage is not None:
        warning = "warning: alert rules are applied without a check of their columns by the engine"
        print(f"{warning}: {outage.detail} ({outage.code})", file=sys.stderr)


async def _require_members_after_apply(principals: Sequence[str], document: Any, source: str, services: Any) -> None:
    """Check that the team will contain the given principals (ids of members) after the document is applied.

    ``source`` is the name of the document's file, for the error.

    Raises:
        WorkspaceError: NOT_FOUND ``MEMBER_NOT_FOUND`` if a principal would be missing; otherwise the errors of
            :meth:`shared.catalog.service.CatalogService.plan`.
    """
    from shared.catalog.items import ItemKind  # noqa: PLC0415  avoids slow imports for --help

    declared = {member.id for member in document.team}
    undeclared = [principal for principal in principals if principal not in declared]
    if not undeclared:
        return
    plan = await services.provenance.catalog_service.plan(document)
    retained, changed = ({(item.kind, item.key) for item in items} for items in (plan.retained, plan.changes))
    for principal in undeclared:
        # Members that were created through the API stay, although the document does not contain them.
        if (ItemKind.MEMBER, principal) in retained:
            continue
        detail = (
            f"{source} does not contain {principal}, and neither does the workspace; add the member to the document"
        )
        if (ItemKind.MEMBER, principal) in changed:
            rule = "so apply would remove this member; export the workspace first"
            detail = f"{source} does not contain {principal}, {rule}"
        raise WorkspaceError(Kind.NOT_FOUND, "MEMBER_NOT_FOUND", detail)


async def _apply_document(loaded: "LoadedDocument", options: argparse.Namespace, services: Any) -> None:
    from shared.catalog.checks import iterate_unknown_query_warnings  # noqa: PLC0415  avoids slow imports for --help

    actor = options.actor or ServiceUser.APPLY
    plan = await services.provenance.catalog_service.apply(loaded.document, actor)
    _print_warnings(loaded, iterate_unknown_query_warnings(loaded.document, plan.retained_query_lookups))
    _print_plan(plan, sys.stderr if options.issue_key else sys.stdout)
    if options.issue_key:
        issued = await services.access.api_keys.issue_without_rights_check(actor, options.issue_key, "issued by apply")
        print(issued.api_key)


async def _check_new_items_and_list_query_uses(loaded: "LoadedDocument", services: Any) -> "list[QueryUse]":
    """Check new members, new approvals and new uses of queries by alert rules; return these uses.

    Raises:
        DocumentError: a new member has a reserved id, a member has the id or the object id of another member, a new
            approval was not given by a person with the right to approve, or an alert rule has parameters or a time
            range that its query does not accept.
        WorkspaceError: the errors of :func:`shared.catalog.document_plans.plan_document_for_command_line`.
    """
    from shared.catalog.checks import check_approvers  # noqa: PLC0415  avoids slow imports for --help
    from shared.catalog.document_plans import (  # noqa: PLC0415  as above
        find_lookups_of_queries_with_stored_approval,
        find_reserved_ids_of_new_members,
        find_taken_ids_of_members,
    )
    from shared.catalog.sections import Sections  # noqa: PLC0415  as above

    catalog = await services.provenance.catalog_service.load()
    approved = find_lookups_of_queries_with_stored_approval(loaded.document, catalog)
    found = find_reserved_ids_of_new_members(loaded.document, catalog)
    found += find_taken_ids_of_members(loaded.document, catalog)
    found += check_approvers(Sections.from_document(loaded.document), approved)
    if found:
        raise loaded.build_error_with_positions(found)
    return _list_query_uses_of_rules(loaded, catalog)


async def _export_document(options: argparse.Namespace, services: Callable[[], Any]) -> ExitCode:
    from shared.catalog.export import export_document  # noqa: PLC0415  avoids slow imports for --help
    from shared.catalog.yaml_writer import iterate_yaml_parts  # noqa: PLC0415  as above

    running = services()
    try:
        document = export_document(await running.provenance.catalog_service.load())
    finally:
        await running.close()
    if options.format == "yaml":
        sys.stdout.writelines(iterate_yaml_parts(document))
    else:
        print(json.dumps(document, ensure_ascii=False, indent=2))
    return DONE


def _run_over_https(options: argparse.Namespace) -> ExitCode:
    """Run a subcommand over HTTPS; ``validate`` requests the plan, and prints only problems and warnings."""
    from shared.catalog.problems import DocumentError  # noqa: PLC0415  avoids slow imports for --help
    from shared.commands import remote_workspace  # noqa: PLC0415  as above

    try:
        workspace = remote_workspace.RemoteWorkspace(options.url, remote_workspace.read_api_key(options.key_file))
    except WorkspaceError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        return FAILED
    if options.verb == "export":
        sys.stdout.write(workspace.export_document(f"application/{options.format}").decode())
        return DONE
    content = options.file.read_bytes()
    try:
        planned = workspace.request_plan(content, options.file)
        if options.verb == "apply":
            planned = workspace.apply_document_and_return_plan(content, options.file, planned["planTag"])
    except DocumentError as error:
        return _print_document_problems(error)
    for warning in planned["warnings"]:
        print(f"warning: {options.file}: {warning['field']}: {warning['message']}", file=sys.stderr)
    if options.verb != "validate":
        _print_plan(remote_workspace.plan_from_json(planned), sys.stdout)
    return DONE


def _print_plan(plan: "CatalogPlan", stream: TextIO) -> None:
    for line in format_plan_lines(plan):
        print(line, file=stream)


def _load_services() -> Any:
    from shared.wiring import services  # noqa: PLC0415  opens settings and adapters only when a verb needs them

    return services()


MISSING: Final = object()


def format_plan_lines(plan: "CatalogPlan") -> Iterator[str]:
    """Yield lines of text that show the changes of a plan, and a summary.

    The line of an item begins with ``+`` if it is added, ``~`` if changed, ``-`` if removed, ``=`` if kept although the
    document lacks it, and ``!`` if kept because of a conflict.
    """
    for change in plan.changes:
        yield from _format_change_lines(change)
    for item in plan.retained:
        yield f"{'!' if item.conflict else '='} {item.kind} {item.key}: {item.reason}, unchanged"
    counts = {sign: sum(_get_change_sign(change) == sign for change in plan.changes) for sign in "+~-"}
    yield f"{counts['+']} added, {counts['~']} changed, {counts['-']} removed, {len(plan.retained)} kept"


def _get_change_sign(change: "ItemChange") -> str:
    if change.before is None:
        return "+"
    return "-" if change.after is None else "~"


def _format_change_lines(change: "ItemChange") -> Iterator[str]:
    yield f"{_get_change_sign(change)} {change.kind} {change.key}"
    if change.before is not None and change.after is not None:
        for field, before, after in _iterate_differences("", change.before, change.after):
            yield from _format_field_difference_lines(field, before, after)


class _FieldDifference(NamedTuple):
    """Dotted name of a field that differs between two definitions, and its values; ``MISSING`` for no value."""

    field_name: str
    before: Any
    after: Any


def _iterate_differences(field_name: str, before: Any, after: Any) -> Iterator[_FieldDifference]:
    """Yield the dotted name, the old value and the new value of each field in which two definitions differ.

    ``field_name`` is the dotted name of the compared values; empty for whole definitions.
    """
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        if not is_same_json(before, after):
            yield _FieldDifference(field_name, before, after)
        return
    for name in dict.fromkeys([*before, *after]):
        yield from _iterate_differences(
            f"{field_name}.{name}".removeprefix("."), before.get(name, MISSING), after.get(name, MISSING)
        )


def _format_field_difference_lines(field_name: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield f"    {field_name}:"
        compared = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
        yield from (f"      {line}" for line in compared[2:])
    else:
        yield f"    {field_name}: {_format_value(before)} -> {_format_value(after)}"


def _format_value(value: Any) -> str:
    return "(none)" if value is MISSING else json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    # Files that the command creates in a data directory are private to the operator.
    os.umask(os.umask(0o077) | 0o077)
    sys.exit(main(sys.argv[1:]))
