"""Commands for amendments (documented corrections of plant data)."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from oi.cli.audit import add_date_options, add_page_options, print_note_about_damaged_records
from oi.cli.output import JsonObject, add_json_option, open_workspace, print_json, print_rows
from oi.cli.signing import add_signature_options, send_decision

_RIGHT = "Workspace.Amendment.Approve"
_COLUMNS = ("RecordID", "ScopeKey", "Status", "EntityType", "EntityID", "ReasonCategory", "AmendedBy", "AmendedAt")


@click.group("amendments")
def amendment_commands() -> None:
    """Create, list, approve and reject amendments."""


@amendment_commands.command("list")
@click.option("--scope", help="Scope; pending amendments of all scopes if omitted.")
@click.option("--status", type=click.Choice(["pending", "approved", "rejected"]))
@click.option("--entity-type")
@click.option("--entity-id")
@click.option("--reason-category")
@click.option("--amended-by", metavar="ID", help="Amendments of one author.")
@add_date_options
@add_page_options
@click.option("--limit", type=click.IntRange(1, 1000))
@add_json_option
def list_amendments(scope: str | None, status: str | None, as_json: bool, **filters: Any) -> None:
    """List the amendments of a scope, newest first, or the pending amendments of all scopes."""
    if scope is None and (status not in {None, "pending"} or any(value is not None for value in filters.values())):
        raise click.UsageError("--scope is required with any filter other than --status pending.")
    records: Sequence[Mapping[str, Any]]
    damaged: Sequence[str]
    with open_workspace() as workspace:
        if scope is None:
            records, damaged, more = workspace.amendments.pending(), (), False
        else:
            page = workspace.amendments.list(scope, status=status, **filters)
            records, damaged, more = page.records, page.damaged, page.has_more
    if as_json:
        print_json({"amendments": records} if scope is None else records)
    else:
        print_rows(records, _COLUMNS, empty_text="no amendments")
    print_note_about_damaged_records(damaged)
    if more:
        click.echo("further amendments match; narrow the filters or raise --limit", err=True)


@amendment_commands.command("create")
@click.option("--scope", required=True)
@click.option("--entity-type", required=True)
@click.option("--entity-id", required=True)
@click.option("--original", required=True, type=JsonObject(), help="The record before.")
@click.option("--amended", required=True, type=JsonObject(), help="The record after.")
@click.option("--reason-category", required=True)
@click.option("--reason-text", default="", help="The reason in words.")
@add_json_option
def create_amendment(as_json: bool, **members: Any) -> None:
    """Create an amendment; the changed fields are those that differ between the old and the new values."""
    with open_workspace() as workspace:
        record = workspace.amendments.create(**members)
    print_json(record) if as_json else click.echo(f"amendment {record['RecordID']} is {record['Status']}")


@amendment_commands.command("approve")
@click.argument("record_id")
@click.option("--scope", required=True)
@add_signature_options
@add_json_option
def approve_amendment(record_id: str, scope: str, meaning: str | None, statement: str | None, as_json: bool) -> None:
    """Approve a pending amendment of another user; --meaning signs the approval.

    If the signature needs a more recent sign-in, the command asks for the API key, or reads it from standard input.
    """
    record = send_decision(
        _RIGHT,
        meaning,
        statement,
        lambda workspace: workspace.amendments.approve(scope, record_id, meaning=meaning, statement=statement),
    )
    print_json(record) if as_json else click.echo(f"{record_id} is approved (record {record['RecordID']})")


@amendment_commands.command("reject")
@click.argument("record_id")
@click.option("--scope", required=True)
@click.option("--reason", required=True, help="Why it is rejected.")
@add_signature_options
@add_json_option
def reject_amendment(
    record_id: str, scope: str, reason: str, meaning: str | None, statement: str | None, as_json: bool
) -> None:
    """Reject a pending amendment of another user; --meaning rejection signs the rejection.

    If the signature needs a more recent sign-in, the command asks for the API key, or reads it from standard input.
    """
    record = send_decision(
        _RIGHT,
        meaning,
        statement,
        lambda workspace: workspace.amendments.reject(scope, record_id, reason, meaning=meaning, statement=statement),
    )
    print_json(record) if as_json else click.echo(f"{record_id} is rejected (record {record['RecordID']})")
