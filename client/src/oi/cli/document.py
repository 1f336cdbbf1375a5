"""Commands for the workspace document, a YAML file that defines everything in a workspace."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oi.cli.output import add_json_option, add_output_option, open_workspace, print_json, write_output_file

if TYPE_CHECKING:
    from oi.models import WorkspacePlan


@click.group("workspace")
def workspace_commands() -> None:
    """Export, plan and apply the workspace document."""


@workspace_commands.command("show")
@add_json_option
def show_workspace(as_json: bool) -> None:
    """Show the name, tier and policies of the workspace; with --json, all its properties."""
    with open_workspace() as opened:
        shown = opened.request("GET", "/oi-api/workspace")
    if as_json:
        print_json(shown)
        return
    click.echo(f"{shown['name']} ({shown['id']}), tier {shown['tier']}")
    print_json(shown["policies"])


@workspace_commands.command("export")
@add_output_option
@click.option("as_json", "--json", is_flag=True, help="Export JSON instead of YAML.")
def export_workspace_document(output_path: Path | None, as_json: bool) -> None:
    """Export the whole workspace as a document in YAML."""
    with open_workspace() as opened:
        if as_json:
            content = opened.request("GET", "/oi-api/workspace/document")
            document = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        else:
            document = opened.export_document()
    if output_path is None:
        sys.stdout.buffer.write(document.encode())
    else:
        write_output_file(output_path, document.encode())


@workspace_commands.command("plan")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@add_json_option
def show_plan_of_workspace_document(file: Path, as_json: bool) -> None:
    """Show the changes that a workspace document would make."""
    with open_workspace() as opened:
        plan = opened.plan_document(_read_document_text(file))
    print_json(plan) if as_json else _print_plan(plan)


@workspace_commands.command("apply")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("is_confirmed", "--yes", is_flag=True, help="Do not ask.")
@add_json_option
def apply_workspace_document(file: Path, is_confirmed: bool, as_json: bool) -> None:
    """Change the workspace so that it matches a document, after showing the planned changes."""
    text = _read_document_text(file)
    with open_workspace() as opened:
        plan = opened.plan_document(text)
        if not as_json:
            _print_plan(plan)
        if plan["changes"] and not is_confirmed:
            click.confirm("Apply these changes?", abort=True, err=True)
        applied = opened.apply_document(text, plan["planTag"])
    print_json(applied) if as_json else click.echo(_format_change_count(len(applied["changes"])))


def _read_document_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is not UTF-8 text.") from None


def _format_change_count(count: int) -> str:
    return f"{count} change{'s'[: count != 1]} applied"


def _print_plan(plan: "WorkspacePlan") -> None:
    for change in plan["changes"]:
        click.echo(f"{change['action']:8} {change['kind']} {change['key']}")
    for kept in plan["kept"]:
        click.echo(f"kept     {kept['kind']} {kept['key']}: {kept['reason']}")
    if not plan["changes"]:
        click.echo("no changes: the workspace matches the document")
