"""Output of commands: tables for people, JSON for programs."""

import errno
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from oi.control_characters import INVISIBLE, escape_controls
from oi.drafts import create_draft_file
from oi.json_text import JsonTextError, encode_json, parse_json

if TYPE_CHECKING:
    from rich.table import Table

    from oi import AsyncWorkspace, Workspace

_NOT_REPLACEABLE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV, errno.ENAMETOOLONG})
"""Errors if a folder does not permit a second file, or a file cannot be replaced, for instance a bind-mounted one."""
_MAX_LINKS = 40
"""Maximum number of symbolic links that are followed, because they can form a loop."""
_CONTROLS_IN_JSON = re.compile(f"[{INVISIBLE}]")
Command = TypeVar("Command", bound=Callable[..., Any])
"""Function that executes a command; a decorator that adds an option returns a function of the same type."""


JSON_FILE = click.File("r", encoding="utf-8-sig")
"""Type of an argument that names a JSON file; a byte order mark, which editors on Windows write, is skipped."""


def add_json_option(command: Command) -> Command:
    """Add the option ``--json`` to a command (decorator)."""
    return click.option("as_json", "--json", is_flag=True, help="Print the JSON of the service.")(command)


def add_output_option(command: Command) -> Command:
    """Add the option ``--output`` to a command (decorator); ``-`` is standard output, which is also the default."""
    return click.option(
        "output_path",
        "-o",
        "--output",
        type=click.Path(),
        # The text is compared, because Path("./-") equals Path("-").
        callback=lambda _context, _option, text: None if text in (None, "-") else Path(text),
        help="Write to a file; - is standard output.",
    )(command)


def write_output_file(path: Path, content: bytes) -> None:
    """Write the file of the option ``--output``; a file that exists is replaced only when the new one is complete.

    A pipe or a device is written directly. So is a file that cannot be replaced, for instance because its folder is
    write-protected. An open file such as ``/dev/stdout`` is appended to.

    Raises:
        OSError: the file cannot be written; the error names ``path``. An earlier file is unchanged, unless it was
            written directly.
    """
    try:
        _write_or_replace_file(path, content)
    except OSError as error:
        # Errors of an open file and of its draft do not name the file.
        raise OSError(error.errno, error.strerror, str(path)) from None


def _write_or_replace_file(path: Path, content: bytes) -> None:
    if _is_open_file_of_process(path):
        # Standard output can lead to a file with earlier content.
        with path.open("ab") as file:
            file.write(content)
        return
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = path.resolve()  # a symbolic link is not replaced by a file
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    try:
        _replace_file(target, content)
    except OSError as error:
        if error.errno not in _NOT_REPLACEABLE:
            raise
        target.write_bytes(content)


def _is_open_file_of_process(path: Path) -> bool:
    """Return whether a path, such as ``/dev/stdout``, leads to an open file of a process through ``/proc``."""
    for _ in range(_MAX_LINKS):
        path = path.parent.resolve() / path.name
        if path.is_relative_to("/proc"):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return False


def _replace_file(target: Path, content: bytes) -> None:
    with create_draft_file(target) as draft:
        if target.exists():
            shutil.copymode(target, draft)
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)


def read_json(file: IO[str]) -> Any:
    """Read a JSON file and return its value.

    Raises:
        UsageError: the file is not UTF-8 text, or is JSON that the service would reject.
    """
    try:
        value = parse_json(file.read())
        encode_json(value)
    except ValueError as error:
        raise click.UsageError(f"{getattr(file, 'name', 'the input')} is not JSON: {error}") from None
    return value


def read_text_from_standard_input() -> str:
    """Read standard input as UTF-8 text; a byte order mark is skipped.

    Raises:
        UsageError: the input is not UTF-8 text.
    """
    try:
        return _open_standard_input("strict").read()
    except UnicodeDecodeError:
        raise click.UsageError("the input is not UTF-8 text") from None


def read_key_from_standard_input() -> str:
    """Read an API key from the first line of standard input; empty if there is none. A byte order mark is skipped."""
    # The error of a strict conversion would print a part of the key.
    return _open_standard_input("replace").readline().strip()


def _open_standard_input(errors: str) -> IO[str]:
    """Return standard input as UTF-8 text; ``errors`` selects the treatment of invalid bytes, as for `open`."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors=errors)
    return sys.stdin


class JsonObject(click.ParamType[dict[str, Any]]):
    """Type of a command-line option whose value is a JSON object."""

    name = "JSON"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a JSON object."""
        try:
            parsed = parse_json(value)
            encode_json(parsed)
        except JsonTextError as error:
            self.fail(f"the value is not JSON: {error}", param, ctx)
        if not isinstance(parsed, dict):
            self.fail("the value is not a JSON object", param, ctx)
        return parsed


def open_workspace(*scopes: str) -> "Workspace":
    """Open the workspace with the stored login or the environment variables.

    Args:
        scopes: access rights that the command needs; if empty, all rights of the key.
    """
    from oi import Workspace  # noqa: PLC0415  loads httpx
    from oi.cli.stored_login import require_login  # noqa: PLC0415

    login = require_login()
    return Workspace(login.url, key=login.key, token=login.token, scopes=list(scopes) or None)


def open_async_workspace() -> "AsyncWorkspace":
    """Open the asyncio client of the workspace with the stored login or the environment variables."""
    from oi import AsyncWorkspace  # noqa: PLC0415  loads httpx
    from oi.cli.stored_login import require_login  # noqa: PLC0415

    login = require_login()
    return AsyncWorkspace(login.url, key=login.key, token=login.token)


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    click.echo(format_json(value, indent=2))


def format_json(value: Any, indent: int | None = None) -> str:
    """Format a value as JSON in which control characters and invisible characters are escaped.

    All characters beyond ASCII are escaped if standard output cannot encode them.
    """
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(value, indent=indent, ensure_ascii=not is_unicode)
    return _CONTROLS_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_rows(
    rows: Iterable[Mapping[str, Any]], column_names: Sequence[str], *, empty_text: str = "nothing found"
) -> None:
    """Print rows as a table that has only the columns with these names; print ``empty_text`` if there are no rows."""
    from rich.console import Console  # noqa: PLC0415  slow to load

    table = _build_table(rows, column_names)
    if not table.row_count:
        click.echo(empty_text)
    elif (console := Console()).is_terminal:
        console.print(table, crop=False)
    else:
        click.echo(_format_table(table))


def format_rows_as_table(rows: Iterable[Mapping[str, Any]], column_names: Sequence[str]) -> str:
    """Format rows as the text of a table that has only the columns with these names."""
    return _format_table(_build_table(rows, column_names))


def _build_table(rows: Iterable[Mapping[str, Any]], column_names: Sequence[str]) -> "Table":
    from rich.table import Table  # noqa: PLC0415  slow to load
    from rich.text import Text  # noqa: PLC0415  as above

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in column_names:
        table.add_column(Text(escape_controls(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(format_cell(row.get(name))) for name in column_names))
    return table


def _format_table(table: "Table") -> str:
    """Format a table for a file or pipe: cells are not shortened, and lines do not end with spaces."""
    from rich.console import Console  # noqa: PLC0415  slow to load

    console = Console(width=10_000, force_terminal=False, color_system=None)
    with console.capture() as written:
        console.print(table, crop=False)
    return "\n".join(line.rstrip() for line in written.get().splitlines())


def format_cell(value: Any) -> str:
    """Format a value as the text of a table cell, on one line and without control characters."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return escape_controls(json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value))
