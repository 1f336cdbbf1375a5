"""The workspace command: what it prints, where, and how it exits."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from shared.backends.embedded.catalog import SCHEMA, SqliteCatalogStore
from shared.backends.embedded.provenance import SqliteAuditLog
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.service import CatalogService
from shared.commands.workspace import DONE, FAILED, REFUSED, main
from shared.errors import Kind, WorkspaceError, invalid
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.ports import EngineQuery, EngineResult
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.stores import workspace_id

ROOT = Path(__file__).parents[4]
ADMIN = "admin@plant-a.example"


@dataclass
class Issued:
    """A key as the key service hands it out."""

    api_key: str


@dataclass
class Keys:
    """Hands out numbered keys."""

    issued: list[tuple[str, str]] = field(default_factory=list)

    async def issue(self, actor: str, principal: str, _name: str) -> Issued:
        """Note who asked for whose key."""
        self.issued.append((actor, principal))
        return Issued(f"oik_{len(self.issued)}")


class Engine:
    """Binds what does not say ``wher``, unless it is down."""

    down = False

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Bind a query."""
        if self.down:
            raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The query engine does not answer.")
        if "wher " in query.text:
            error = invalid("query", "'wher' is no operator", code="QUERY_INVALID")
            error.members.update(line=2, column=3)
            raise error
        return EngineResult((), [], 1.0)

    async def ping(self) -> None:
        """Answer."""


class Services:
    """What the command needs of the wiring, over files; made anew for each run as a new process would."""

    def __init__(self, folder: Path, keys: Keys, engine: Engine) -> None:
        self.query_columns = QueryColumns(engine)
        self._database = SqliteDatabase(folder / "workspace.sqlite", SCHEMA)
        self._log = SqliteAuditLog(folder / "provenance.sqlite", workspace_id)
        self.catalog_service = CatalogService(SqliteCatalogStore(self._database), self._log)
        self.api_keys = keys

    async def close(self) -> None:
        """Close the files."""
        await self._log.close()
        await self._database.close()


@dataclass
class Desk:
    """A folder with a document and stores.

    Attributes:
        folder: where they are.
        keys: what was issued.
        engine: binds the queries.
    """

    folder: Path
    keys: Keys = field(default_factory=Keys)
    engine: Engine = field(default_factory=Engine)

    def run(self, *arguments: str, text: str = PLANT) -> int:
        """Run the command on a document with this text."""
        file = self.folder / "w.yaml"
        file.write_text(text, encoding="utf-8")
        return main([arguments[0], str(file), *arguments[1:]], lambda: Services(self.folder, self.keys, self.engine))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty desk."""
    return Desk(tmp_path)


def test_a_sound_document_validates_in_silence(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """Validate exits with 0 and prints nothing."""
    assert desk.run("validate") == DONE
    assert capsys.readouterr() == ("", "")


def test_an_id_of_several_scripts_is_a_warning(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """Validate prints a warning with its place and exits with 0."""
    assert desk.run("validate", text=PLANT.replace("id: viewer@", "id: vi\u0435wer@")) == DONE
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("warning: ")
    assert errors.split(".yaml:")[1] == (
        "5:10: team[1].id: mixes letters of several scripts (CYRILLIC, LATIN), some of which look alike\n"
    )


def test_problems_are_lines_on_standard_error(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """Each problem is a line with file, line and column; nothing is applied."""
    faulty = PLANT.replace("name: Rig,", "name: 7,").replace("surface: cooling,", "surface: gone,")
    for verb in ("validate", "diff", "apply"):
        assert desk.run(verb, text=faulty) == REFUSED
        output, errors = capsys.readouterr()
        assert output == ""
        assert [line.split(".yaml:")[1] for line in errors.splitlines()] == [
            "8:25: connections[0].name: should be a valid string",
            "23:41: warmQueries[1].surface: unknown surface: gone",
        ]
    assert not (desk.folder / "workspace.sqlite").exists()


def test_apply_refuses_what_the_engine_does_not_bind(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """A query that the engine refuses is a problem at its place in the file, and nothing is applied."""
    faulty = PLANT.replace("kql: Telemetry | count", "kql: |\n      Telemetry\n      | wher x")
    assert desk.run("validate", text=faulty) == DONE
    assert desk.run("apply", text=faulty) == REFUSED
    output, errors = capsys.readouterr()
    assert output == ""
    assert [line.split(".yaml:")[1] for line in errors.splitlines()] == [
        "21:10: warmQueries[0].kql: 'wher' is no operator (line 2, column 3 of the query)",
    ]
    assert desk.run("diff") == DONE
    assert "0 added" not in capsys.readouterr().out


def test_apply_goes_on_without_the_engine(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """While the engine does not answer, queries are applied untried, and a warning says so."""
    desk.engine.down = True
    assert desk.run("apply") == DONE
    output, errors = capsys.readouterr()
    assert output.endswith("13 added, 0 changed, 0 removed, 0 kept\n")
    assert errors.startswith("warning: the queries are applied without validation by the engine: ")
    assert errors.endswith("(QUERY_ENGINE_UNAVAILABLE)\n")


def test_diff_shows_and_apply_makes_the_changes(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """Diff prints what apply then does and prints alike; afterwards there is nothing left to do."""
    assert desk.run("diff") == DONE
    shown = capsys.readouterr().out
    assert desk.run("apply") == DONE
    assert capsys.readouterr().out == shown
    assert "+ connection rig\n" in shown
    assert shown.endswith("13 added, 0 changed, 0 removed, 0 kept\n")
    assert desk.run("diff") == DONE
    assert capsys.readouterr().out == "0 added, 0 changed, 0 removed, 0 kept\n"


def test_changes_are_shown_field_by_field(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed item lists its changed fields with both values; text of several lines is compared by line."""
    before = PLANT.replace("kql: Telemetry | count", "kql: |\n      Telemetry\n      | count")
    after = before.replace("      | count", "      | take 5").replace("role: Viewer", "role: Editor")
    assert desk.run("apply", text=before) == DONE
    capsys.readouterr()
    assert desk.run("diff", text=after.replace("- {name: recipes", "- {name: orders")) == DONE
    assert capsys.readouterr().out.splitlines() == [
        "~ member viewer@plant-a.example",
        '    role: "Viewer" -> "Editor"',
        "~ warmQuery q1",
        "    kql:",
        "      @@ -1,2 +1,2 @@",
        "       Telemetry",
        "      -| count",
        "      +| take 5",
        "+ container orders/orders",
        "- container orders/recipes",
        "1 added, 2 changed, 1 removed, 0 kept",
    ]


def test_the_issued_key_stands_alone_on_standard_output(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """With --issue-key the report goes to standard error, so that the output is the key."""
    assert desk.run("apply", "--as", ADMIN, "--issue-key", "viewer@plant-a.example") == DONE
    output, errors = capsys.readouterr()
    assert output == "oik_1\n"
    assert "13 added" in errors
    assert desk.keys.issued == [(ADMIN, "viewer@plant-a.example")]


@pytest.mark.parametrize("option", ["--as", "--issue-key"])
def test_strangers_are_refused_before_anything_is_applied(
    desk: Desk, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """A principal that is no member of the team neither applies nor gets a key."""
    assert desk.run("apply", option, "stranger") == REFUSED
    assert "stranger is not a member of the team" in capsys.readouterr().err
    assert not (desk.folder / "workspace.sqlite").exists()


def test_another_workspaces_document_is_refused(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """A refusal of the service is a line with its code, exit code 1."""
    assert desk.run("apply") == DONE
    assert desk.run("apply", text=PLANT.replace("id: plant-a,", "id: plant-b,")) == REFUSED
    assert capsys.readouterr().err.startswith("WORKSPACE_ID_FIXED: ")


def test_stores_that_do_not_answer_are_exit_code_2(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """A store without its file is told apart from a refused document."""
    (desk.folder / "workspace.sqlite").mkdir()
    assert desk.run("apply") == FAILED
    assert capsys.readouterr().err.startswith("CATALOG_UNAVAILABLE: ")


def test_a_file_that_cannot_be_read_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file is named."""
    assert main(["validate", str(tmp_path / "missing.yaml")]) == FAILED
    assert "missing.yaml" in capsys.readouterr().err


def test_a_file_that_is_not_utf8_is_told_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A byte that is no UTF-8 is a located problem; a byte order mark is none."""
    file = tmp_path / "w.yaml"
    file.write_bytes(b"workspace:\n  name: caf\xe9\n")
    assert main(["validate", str(file)]) == REFUSED
    assert capsys.readouterr().err == f"{file}:2:12: is not UTF-8\n"
    file.write_bytes(b"\xef\xbb\xbf" + PLANT.encode())
    assert main(["validate", str(file)]) == DONE


@pytest.mark.parametrize("arguments", [[], ["validate"], ["frobnicate", "x"], ["diff", "x", "--as", "y"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    """Argparse refuses what is no command."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == FAILED


def test_the_module_is_cheap_to_import_and_runs_as_a_program() -> None:
    """Help needs neither pydantic nor YAML nor stores; the sample validates as a program, too."""
    code = "import sys, shared.commands.workspace; sys.exit(bool({'pydantic', 'yaml', 'sqlite3'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
    command = [sys.executable, "-m", "shared.commands.workspace", "validate", "samples/workspace.yaml"]
    assert subprocess.run(command, cwd=ROOT, check=False, capture_output=True).stderr == b""
