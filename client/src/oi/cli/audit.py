"""Commands for the audit log."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oi.cli.main import DONE, REFUSED, ExitCode
from oi.cli.output import (
    Command,
    JsonObject,
    add_json_option,
    add_output_option,
    open_workspace,
    print_json,
    print_rows,
    write_output_file,
)
from oi.cli.verify import fetch_chain
from oi.control_characters import escape_controls

if TYPE_CHECKING:
    from oi.models import Verdict

_TARGETS = click.Choice(["PlatformConfig", "AccessControl", "DomainEvents", "DomainAmendments"])
_SIGNATURE_COLUMNS = ("SignedAt", "PrintedName", "UserID", "Meaning", "Statement", "target", "scopeKey", "recordID")
_RECORD_ID_DIGITS = 12
_COLUMNS = ("RecordID", "Timestamp", "UserID", "ActionType", "EntityType", "EntityID")


def add_chain_options(command: Command) -> Command:
    """Add the command-line options that select an audit chain to a command (decorator)."""
    command = click.option("--scope", metavar="SCOPE", help="Scope of plant events; none for the workspace.")(command)
    return click.option("--target", type=_TARGETS, help="Container; chosen by the scope if omitted.")(command)


def _add_filter_options(command: Command) -> Command:
    for option in (
        click.option("--limit", type=click.IntRange(1), help="Maximum number of records."),
        add_date_options,
        click.option("--user-id", metavar="ID", help="Records of one user."),
        click.option("--action-type", metavar="TYPE", help="Records with one ActionType."),
        click.option("--entity-type", metavar="TYPE", help="Records with one EntityType."),
    ):
        command = option(command)
    return add_chain_options(command)


def add_date_options(command: Command) -> Command:
    """Add the command-line options that select records by date to a command (decorator)."""
    command = click.option("end", "--end-date", metavar="TIME", help="Latest time, inclusive; RFC 3339.")(command)
    return click.option("start", "--start-date", metavar="TIME", help="Earliest time, inclusive; RFC 3339.")(command)


def add_page_options(command: Command) -> Command:
    """Add the command-line options for a range of sequence numbers, and for one page, to a command (decorator)."""
    command = click.option("--offset", type=click.IntRange(0), help="Number of records to skip.")(command)
    command = click.option("--to-sequence", type=int, help="Highest number in the chain, inclusive.")(command)
    return click.option("--from-sequence", type=int, help="Lowest number in the chain, inclusive.")(command)


@click.group("audit")
def audit_commands() -> None:
    """Append to, read, export and verify the audit log."""


@audit_commands.command("append")
@add_chain_options
@click.option("--action-type", required=True, help="What was done.")
@click.option("--entity-type", required=True, help="Kind of the entity.")
@click.option("--entity-id", required=True, help="Id of the entity.")
@click.option("--node-id", help="Node of the plant.")
@click.option("--before-state", type=JsonObject(), help="State before, a JSON object.")
@click.option("--after-state", type=JsonObject(), help="State after, a JSON object.")
@click.option("--name", help="Name of the event.")
@click.option("--description", help="Description of the event.")
@add_json_option
def append_event(target: str | None, scope: str | None, as_json: bool, **fields: Any) -> None:
    """Append an event to the audit log.

    \b
    Example:
      oi audit append --scope line-1 --action-type Valve.Opened --entity-type Valve --entity-id V-7
    """
    required = [fields.pop(name) for name in ("action_type", "entity_type", "entity_id")]
    members = {_NAMES[name]: value for name, value in fields.items() if value is not None}
    with open_workspace() as workspace:
        record = workspace.audit.append(*required, target=target, scope=scope, **members)
    print_json(record) if as_json else click.echo(f"record {record['RecordID']}, hash {record['Hash']}")


_NAMES = {
    "node_id": "NodeID",
    "before_state": "BeforeState",
    "after_state": "AfterState",
    "name": "Name",
    "description": "Description",
}


@audit_commands.command("query")
@_add_filter_options
@add_page_options
@add_json_option
def show_events(as_json: bool, **filters: Any) -> None:
    """Show audit records, newest first."""
    with open_workspace() as workspace:
        page = workspace.audit.query(**filters)
    if as_json:
        print_json(page.records)
    else:
        print_rows(page.records, _COLUMNS, empty_text="no records")
    print_note_about_damaged_records(page.damaged)
    if page.has_more:
        click.echo("further records match; narrow the filters or raise --limit", err=True)


def print_note_about_damaged_records(record_ids: Sequence[str]) -> None:
    """Print to standard error which records are damaged in the store, so that placeholders are shown for them."""
    if record_ids:
        click.echo(
            f"damaged in the store: {', '.join(map(escape_controls, record_ids))}; run `oi audit verify`", err=True
        )


@audit_commands.command("export")
@_add_filter_options
@click.option("file_format", "--format", type=click.Choice(["json", "csv"]), default="json")
@add_output_option
def export_events(file_format: str, output_path: Path | None, **filters: Any) -> None:
    """Export audit records, oldest first, as JSON or CSV; `oi verify-file` verifies a JSON export of a whole chain."""
    with open_workspace() as workspace:
        exported = workspace.audit.export(format=file_format, **filters)
    if output_path is None:
        sys.stdout.buffer.write(exported.content)
    else:
        write_output_file(output_path, exported.content)
        click.echo(f"{len(exported.content):,} bytes in {output_path}", err=True)
    print_note_about_damaged_records(exported.damaged)
    if exported.has_more:
        click.echo("this is only the start of the records; narrow the filters or raise --limit", err=True)


@audit_commands.command("verify")
@add_chain_options
@click.option("--record-id", metavar="ID", help="Also recompute the digest of this record.")
@add_json_option
def verify_chain(target: str | None, scope: str | None, record_id: str | None, as_json: bool) -> ExitCode:
    """Verify an audit chain from its first record to its last.

    The exit code is 1 if the chain is broken, if the record of --record-id is altered or missing, or if the given scope
    has no records.

    The service reads every record, so do not run this command in a loop.
    """
    with open_workspace() as workspace:
        verdict = workspace.audit.verify(target=target, scope=scope, record_id=record_id)
    # An empty scope is most often a wrong name, which must not look like an intact chain to a script.
    is_missing = verdict["Empty"] and scope is not None
    intact = verdict["ChainValid"] and verdict["Valid"] is not False and not is_missing
    if as_json:
        print_json(verdict)
    else:
        click.echo(explain_verdict(verdict))
    return DONE if intact else REFUSED


def explain_verdict(verdict: "Verdict") -> str:
    """Describe the result of a chain's verification in sentences for an auditor."""
    chain = verdict["Target"]
    if verdict["Empty"]:
        return f"{chain}: nothing was checked, because the chain has no records. Is the scope spelled correctly?"
    lines = []
    if verdict["ChainValid"]:
        lines.append(f"{chain}: the chain is intact. No record was altered, inserted, removed or reordered.")
    else:
        lines.append(f"{chain}: THE CHAIN IS BROKEN at {verdict['BrokenAt']}. {verdict['Reason']}")
        if verdict["ForkDetected"]:
            lines.append("Two records claim the same predecessor.")
        lines.append(
            "Do not rely on this chain. Save it with `oi audit fetch`, and compare it with a checkpoint that you hold "
            "with `oi verify-file`."
        )
    if verdict["Record"] is not None:
        content = (
            "its content matches its hash." if verdict["Valid"] else "ITS CONTENT IS ALTERED OR DAMAGED: other hash."
        )
        lines.append(f"Record {verdict['Record']['RecordID']}: {content}")
    elif verdict["Valid"] is False:
        lines.append("The chain has no record with this RecordID.")
    return "\n".join(lines)


audit_commands.add_command(fetch_chain)


@audit_commands.command("prove")
@add_chain_options
@click.argument("record_id")
@add_json_option
def show_inclusion_proof(record_id: str, target: str | None, scope: str | None, as_json: bool) -> None:
    """Show the newest checkpoint of an audit chain, and the proof that the chain contains a record."""
    if not (record_id.isascii() and record_id.isdigit() and len(record_id) <= _RECORD_ID_DIGITS):
        raise click.UsageError(f"{record_id!r} is not a RecordID of 12 digits.")
    with open_workspace() as workspace:
        checkpoint = workspace.audit.checkpoint(target=target, scope=scope)
        proof = workspace.audit.prove(int(record_id), size=checkpoint["size"], target=target, scope=scope)
    if as_json:
        print_json({"checkpoint": checkpoint, "proof": proof})
        return
    click.echo(checkpoint["signedNote"].rstrip("\n"))
    click.echo(f"record {record_id} is leaf {proof['leafIndex']} of {proof['size']}; the path of its hashes:")
    for each in proof["hashes"]:
        click.echo(f"  {each}")


@audit_commands.command("scopes")
@click.option("--target", type=_TARGETS)
@add_json_option
def list_scopes(target: str | None, as_json: bool) -> None:
    """List the audit chains with the results of their last verifications."""
    with open_workspace() as workspace:
        found = workspace.audit.scopes(target=target)
    if as_json:
        print_json({"scopes": found})
        return
    print_rows(found, ["target", "scopeKey", "records", "lastAt", "pendingAmendments", "lastVerdict"])


@audit_commands.command("signatures")
@click.option("--user-id", metavar="ID", help="Signatures of one member.")
@click.option("start", "--from", metavar="TIME", help="Earliest time, inclusive; RFC 3339.")
@click.option("end", "--to", metavar="TIME", help="Latest time, exclusive; RFC 3339.")
@add_json_option
def list_signatures(user_id: str | None, start: str | None, end: str | None, as_json: bool) -> None:
    """List the electronic signatures of the workspace, newest first, for a periodic review."""
    with open_workspace() as workspace:
        found = workspace.audit.signatures(user_id=user_id, start=start, end=end)
    if as_json:
        print_json({"signatures": found})
        return
    print_rows(found, _SIGNATURE_COLUMNS, empty_text="no signatures")
