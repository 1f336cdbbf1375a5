"""Tests of the workspace command: output, streams and exit codes."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from shared.auth.rights import Role
from shared.backends.embedded.catalog import SCHEMA, SqliteCatalogStore
from shared.backends.embedded.provenance import SqliteAuditLog
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.diff import CatalogPlan, ItemChange
from shared.catalog.document import load_document_with_positions
from shared.catalog.items import to_definition
from shared.catalog.models import Member, WorkspaceDocument
from shared.catalog.service import CatalogService
from shared.commands.workspace import DONE, FAILED, REFUSED, main
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.runtime import SYSTEM_RUNTIME
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.ports import EngineQuery, EngineResult
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.stores import get_workspace_id

ROOT = Path(__file__).parents[4]
ADMIN = "admin@plant-a.example"


@dataclass
class Issued:
    """New API key that the fake key service has issued."""

    api_key: str


@dataclass
class Keys:
    """Fake key service that issues numbered keys."""

    issued: list[tuple[str, str]] = field(default_factory=list)

    async def issue_without_rights_check(self, actor: str, principal: str, _name: str) -> Issued:
        """Record the actor and the member, and return a new key."""
        self.issued.append((actor, principal))
        return Issued(f"oik_{len(self.issued)}")


class Engine:
    """Fake engine that rejects queries with ``wher``, and can be unavailable."""

    down = False

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Accept a query, or reject a query that contains ``wher``."""
        if self.down:
            raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The query engine does not answer.")
        if "wher " in query.text:
            error = build_invalid_field_error("query", "'wher' is no operator", code="QUERY_INVALID")
            error.members.update(line=2, column=3)
            raise error
        return EngineResult((), [], 1.0)

    async def ping(self) -> None:
        """Report that the engine is reachable."""


class Services:
    """Services of the workspace command; each run of the command creates them again, as a new process does."""

    def __init__(self, folder: Path, keys: Keys, engine: Engine) -> None:
        self.runtime = SYSTEM_RUNTIME
        self.queries = SimpleNamespace(columns=QueryColumns(engine))
        self._database = SqliteDatabase(folder / "workspace.sqlite", SCHEMA)
        self._log = SqliteAuditLog(folder / "provenance.sqlite", get_workspace_id)
        catalog_service = CatalogService(SqliteCatalogStore(self._database), self._log)
        self.provenance = SimpleNamespace(catalog_service=catalog_service)
        self.access = SimpleNamespace(api_keys=keys)

    async def close(self) -> None:
        """Close the files."""
        await self._log.close()
        await self._database.close()


@dataclass
class CommandEnvironment:
    """Environment of the workspace command: a folder with a document and stores.

    Attributes:
        folder: folder of document and stores.
        keys: issued keys.
        engine: fake query engine.
    """

    folder: Path
    keys: Keys = field(default_factory=Keys)
    engine: Engine = field(default_factory=Engine)

    def run(self, *arguments: str, text: str = PLANT) -> int:
        """Run the workspace command on a document with the given text."""
        file = self.folder / "w.yaml"
        file.write_text(text, encoding="utf-8")
        return main([arguments[0], str(file), *arguments[1:]], lambda: Services(self.folder, self.keys, self.engine))

    async def store_unchecked_document(self, text: str) -> None:
        """Store a document without the checks of new items, as an earlier version possibly did."""
        document = load_document_with_positions(text, "w.yaml", checks_new_items=False).document
        services = Services(self.folder, self.keys, self.engine)
        await services.provenance.catalog_service.apply(document, ADMIN)
        await services.close()

    async def commit_api_change(self, change: ItemChange) -> None:
        """Commit a change of the catalog, as the API does."""
        services = Services(self.folder, self.keys, self.engine)
        await services.provenance.catalog_service.commit_api_changes(lambda _: [change], ADMIN)
        await services.close()


@pytest.fixture
def command_environment(tmp_path: Path) -> CommandEnvironment:
    """Return a command environment whose stores do not exist yet."""
    return CommandEnvironment(tmp_path)


def test_valid_document_prints_nothing(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a valid document, `validate` prints nothing and exits with 0."""
    assert command_environment.run("validate") == DONE
    assert capsys.readouterr() == ("", "")


def test_an_id_with_letters_of_several_scripts_is_a_warning(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """For an id with letters of several scripts, `validate` prints a warning with the position and exits with 0.

    `apply` prints the warning also if it fails.
    """
    mixed = PLANT.replace("id: viewer@", "id: vi\u0435wer@")
    assert command_environment.run("validate", text=mixed) == DONE
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("warning: ")
    assert errors.split(".yaml:")[1] == (
        "5:10: team[1].id: mixes letters of several scripts (CYRILLIC, LATIN), some of which look alike\n"
    )
    assert command_environment.run("apply", text=mixed.replace("Telemetry | take 1", "Telemetry | wher 1")) == REFUSED
    assert "team[1].id: mixes letters of several scripts" in capsys.readouterr().err


def test_problems_are_lines_on_standard_error(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each problem is printed as a line with file, line and column, and nothing is applied."""
    faulty = PLANT.replace("name: Rig,", "name: 7,").replace("surface: cooling,", "surface: gone,")
    for verb in ("validate", "diff", "apply"):
        assert command_environment.run(verb, text=faulty) == REFUSED
        output, errors = capsys.readouterr()
        assert output == ""
        assert [line.split(".yaml:")[1] for line in errors.splitlines()] == [
            "8:25: connections[0].name: should be a valid string",
            "23:41: warmQueries[1].surface: unknown surface: gone",
        ]
    assert not (command_environment.folder / "workspace.sqlite").exists()


def test_apply_rejects_invalid_queries(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """A query that the engine rejects is a problem with its position, and nothing is applied."""
    faulty = PLANT.replace("kql: Telemetry | count", "kql: |\n      Telemetry\n      | wher x")
    assert command_environment.run("validate", text=faulty) == DONE
    assert command_environment.run("apply", text=faulty) == REFUSED
    output, errors = capsys.readouterr()
    assert output == ""
    assert [line.split(".yaml:")[1] for line in errors.splitlines()] == [
        "21:10: warmQueries[0].kql: 'wher' is no operator (line 2, column 3 of the query)",
    ]
    assert command_environment.run("diff") == DONE
    assert "0 added" not in capsys.readouterr().out


RULE = """\
alertRules:
  - {lookup: hot, name: Hot, severity: info, surface: cooling, kind: threshold, query: q2, every: PT1M,
     condition: {column: Count, operator: gt, value: 5}}
"""


def test_rules_that_do_not_fit_their_query_are_rejected(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every subcommand rejects unknown parameters of a rule, and `apply` also columns that the engine does not return.

    A rule over an unknown query is a warning.
    """
    parameters = PLANT + RULE.replace("query: q2", "query: q2, parameters: {zz: 1}")
    for verb in ("validate", "diff", "apply"):
        assert command_environment.run(verb, text=parameters) == REFUSED
        assert "w.yaml:32:109: alertRules[0].parameters.zz: is not a parameter" in capsys.readouterr().err
    assert command_environment.run("validate", text=PLANT + RULE) == DONE
    assert command_environment.run("apply", text=PLANT + RULE) == REFUSED
    assert "alertRules[0].condition.column: is not a column of the query" in capsys.readouterr().err
    assert command_environment.run("apply", text=PLANT + RULE.replace("query: q2", "query: gone")) == DONE
    assert "alertRules[0].query: the document has no warm query gone" in capsys.readouterr().err


async def test_only_validate_warns_about_a_rule_over_a_query_of_the_api(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """`diff` and `apply` do not warn about a rule over a query that the workspace keeps; `validate` reads no store."""
    assert await asyncio.to_thread(command_environment.run, "apply") == DONE
    definition = {"lookup": "extra", "name": "Extra", "surface": "cooling", "kql": "Telemetry | count"}
    await command_environment.commit_api_change(ItemChange("warmQuery", "extra", None, definition))
    rule = RULE.replace("query: q2", "query: extra").replace("{column: Count, operator: gt, value: 5}", "{rows: any}")
    for verb in ("validate", "diff", "apply"):
        capsys.readouterr()
        assert await asyncio.to_thread(command_environment.run, verb, text=PLANT + rule) == DONE
        assert ("has no warm query extra" in capsys.readouterr().err) == (verb == "validate")


def test_apply_works_without_the_engine(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the engine is unavailable, queries and alert rules are applied without validation, with warnings."""
    command_environment.engine.down = True
    assert command_environment.run("apply") == DONE
    output, errors = capsys.readouterr()
    assert output.endswith("13 added, 0 changed, 0 removed, 0 kept\n")
    assert errors.startswith("warning: the queries are applied without validation by the engine: ")
    assert errors.endswith("(QUERY_ENGINE_UNAVAILABLE)\n")
    assert "columns" not in errors
    assert command_environment.run("apply", text=PLANT + RULE) == DONE
    warning = "warning: alert rules are applied without a check of their columns by the engine: "
    assert capsys.readouterr().err.splitlines()[-1].startswith(warning)


def test_diff_prints_the_changes_that_apply_makes(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """`diff` prints the changes that `apply` makes and prints; a second `diff` prints none."""
    assert command_environment.run("diff") == DONE
    shown = capsys.readouterr().out
    assert command_environment.run("apply") == DONE
    assert capsys.readouterr().out == shown
    assert "+ connection rig\n" in shown
    assert shown.endswith("13 added, 0 changed, 0 removed, 0 kept\n")
    assert command_environment.run("diff") == DONE
    assert capsys.readouterr().out == "0 added, 0 changed, 0 removed, 0 kept\n"


def test_changes_are_shown_field_by_field(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a changed item, both values of each changed field are printed; long texts are compared by line."""
    before = PLANT.replace("kql: Telemetry | count", "kql: |\n      Telemetry\n      | count")
    after = before.replace("      | count", "      | take 5").replace("role: Viewer", "role: Editor")
    assert command_environment.run("apply", text=before) == DONE
    capsys.readouterr()
    assert command_environment.run("diff", text=after.replace("- {name: recipes", "- {name: orders")) == DONE
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


def test_standard_output_contains_only_the_issued_key(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --issue-key, only the key is printed on standard output; the plan is on standard error."""
    assert command_environment.run("apply", "--as", ADMIN, "--issue-key", "viewer@plant-a.example") == DONE
    output, errors = capsys.readouterr()
    assert output == "oik_1\n"
    assert "13 added" in errors
    assert command_environment.keys.issued == [(ADMIN, "viewer@plant-a.example")]


@pytest.mark.parametrize("option", ["--as", "--issue-key"])
def test_unknown_members_are_rejected_before_apply(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """A principal who is neither in the document nor in the workspace cannot apply a document or get a key."""
    assert command_environment.run("apply", option, "stranger") == REFUSED
    assert "does not contain stranger, and neither does the workspace" in capsys.readouterr().err
    assert command_environment.run("diff") == DONE
    assert "13 added" in capsys.readouterr().out


async def test_members_of_the_api_can_apply_and_get_keys(
    command_environment: CommandEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member who was created through the API, and is not in the document, can apply a document and get a key.

    The document is planned once to check both options.
    """
    definition = {"id": "second@p", "name": "Second", "role": "Admin"}
    await command_environment.commit_api_change(ItemChange("member", "second@p", None, definition))
    plans: list[WorkspaceDocument] = []
    plan = CatalogService.plan

    async def record_and_plan(service: CatalogService, document: WorkspaceDocument) -> CatalogPlan:
        plans.append(document)
        return await plan(service, document)

    monkeypatch.setattr(CatalogService, "plan", record_and_plan)
    arguments = ["apply", "--as", "second@p", "--issue-key", "second@p"]
    assert await asyncio.to_thread(command_environment.run, *arguments) == DONE
    assert command_environment.keys.issued == [("second@p", "second@p")]
    assert len(plans) == 1


def test_a_member_whom_apply_removes_gets_no_key(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """If apply would remove the member of --issue-key, it changes nothing and recommends an export."""
    viewer = "  - {id: viewer@plant-a.example, name: Viewer, role: Viewer}\n"
    assert command_environment.run("apply") == DONE
    text = PLANT.replace(viewer, "")
    assert command_environment.run("apply", "--issue-key", "viewer@plant-a.example", text=text) == REFUSED
    assert "apply would remove this member; export the workspace first" in capsys.readouterr().err
    assert command_environment.run("diff") == DONE
    assert "0 removed" in capsys.readouterr().out


def test_document_of_another_workspace_is_rejected(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """A document of another workspace is rejected: the error is printed with its code, and the exit code is 1."""
    assert command_environment.run("apply") == DONE
    assert command_environment.run("apply", text=PLANT.replace("id: plant-a,", "id: plant-b,")) == REFUSED
    assert capsys.readouterr().err.startswith("WORKSPACE_ID_FIXED: ")


def test_unavailable_stores_exit_with_code_2(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the stores are unavailable, the exit code is 2; if the document is rejected, it is 1."""
    (command_environment.folder / "workspace.sqlite").mkdir()
    assert command_environment.run("apply") == FAILED
    assert capsys.readouterr().err.startswith("CATALOG_UNAVAILABLE: ")


def test_unreadable_file_exits_with_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the document is unreadable, the command names the file and exits with 2."""
    assert main(["validate", str(tmp_path / "missing.yaml")]) == FAILED
    assert "missing.yaml" in capsys.readouterr().err


def test_invalid_utf8_is_a_problem_with_its_position(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid UTF-8 byte is a problem with a position; a byte order mark is accepted."""
    file = tmp_path / "w.yaml"
    file.write_bytes(b"workspace:\n  name: caf\xe9\n")
    assert main(["validate", str(file)]) == REFUSED
    assert capsys.readouterr().err == f"{file}:2:12: the text is not UTF-8\n"
    file.write_bytes(b"\xef\xbb\xbf" + PLANT.encode())
    assert main(["validate", str(file)]) == DONE


@pytest.mark.parametrize("arguments", [[], ["validate"], ["frobnicate", "x"], ["diff", "x", "--as", "y"]])
def test_an_unknown_subcommand_exits_with_code_2(arguments: list[str]) -> None:
    """An unknown subcommand ends the command with exit code 2."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == FAILED


def test_help_imports_no_slow_modules() -> None:
    """`--help` imports neither pydantic nor YAML nor stores."""
    code = "import sys, shared.commands.workspace; sys.exit(bool({'pydantic', 'yaml', 'sqlite3'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
    command = [sys.executable, "-m", "shared.commands.workspace", "validate", "samples/workspace.yaml"]
    assert subprocess.run(command, cwd=ROOT, check=False, capture_output=True).stderr == b""


@pytest.mark.parametrize("text_format", ["yaml", "json"])
def test_an_exported_document_changes_nothing(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str], text_format: str
) -> None:
    """`export` prints the applied workspace as a document, and applying this document changes nothing."""
    assert command_environment.run("apply") == DONE
    capsys.readouterr()
    services = command_environment.keys, command_environment.engine
    assert main(["export", "--format", text_format], lambda: Services(command_environment.folder, *services)) == DONE
    exported = capsys.readouterr().out
    assert command_environment.run("diff", text=exported) == DONE
    assert capsys.readouterr().out == "0 added, 0 changed, 0 removed, 0 kept\n"


def test_only_new_approvals_need_an_approver(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stored approval stays if its approver loses the right; a new approval by this member is rejected."""
    assert command_environment.run("apply") == DONE
    demoted = PLANT.replace("name: Admin, role: Admin", "name: Admin, role: Viewer")
    assert demoted != PLANT
    assert command_environment.run("apply", text=demoted) == DONE
    capsys.readouterr()
    changed = demoted.replace("kql: Telemetry | count", "kql: Telemetry | take 2")
    assert command_environment.run("diff", text=changed) == REFUSED
    assert "approval.approvedBy: must be a member with the right" in capsys.readouterr().err


def test_only_new_members_cannot_have_reserved_ids(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    """`diff` and `apply` reject a new member with a reserved id; a stored member keeps such an id and can change."""
    reserved = PLANT.replace("id: historian", "id: system")
    for verb in ("diff", "apply"):
        assert command_environment.run(verb, text=reserved) == REFUSED
        assert "w.yaml:6:10: team[2].id: must not be system, in any letter case" in capsys.readouterr().err
    asyncio.run(command_environment.store_unchecked_document(reserved))
    renamed = reserved.replace("name: Historian", "name: Other")
    assert command_environment.run("apply", text=renamed) == DONE
    assert capsys.readouterr().out.startswith("~ member system\n")


@pytest.mark.parametrize(
    ("historian", "problem"),
    [
        ("id: BOB@p", "w.yaml:6:10: team[2].id: looks like the id of another member: bob@p; use that id or choose"),
        ("id: historian, oid: ABC", "w.yaml:6:26: team[2].oid: must be unique; abc is already the object id of bob@p"),
    ],
)
def test_the_command_reports_where_a_document_uses_the_id_of_another_member(
    command_environment: CommandEnvironment, capsys: pytest.CaptureFixture[str], historian: str, problem: str
) -> None:
    """`diff` and `apply` report the line of an id or object id that a member has who was created through the API."""
    assert command_environment.run("apply") == DONE
    bob = to_definition(Member(id="bob@p", name="Bob", role=Role.VIEWER, oid="abc"))
    asyncio.run(command_environment.commit_api_change(ItemChange("member", "bob@p", None, bob)))
    text = PLANT.replace("id: historian", historian)
    for verb in ("diff", "apply"):
        capsys.readouterr()
        assert command_environment.run(verb, text=text) == REFUSED
        assert problem in capsys.readouterr().err
