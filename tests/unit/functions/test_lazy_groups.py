"""Groups that are loaded when they are first asked for something."""

import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import functions
from functions import GROUPS
from functions.lazy_groups import LazyGroup
from shared.auth.principals import CredentialKind, Principal
from shared.http.messages import Reply, Request
from shared.http.operations import Access, Call, Group
from shared.http.pipeline import RequestPipeline
from tests.service.running import ROOT

MODULE = "group_of_a_test"


@pytest.fixture
def declared() -> Iterator[Group]:
    """Give the empty group of a module that can be loaded by name."""
    module, group = ModuleType(MODULE), Group("sample")
    module.GROUP = group  # type: ignore[attr-defined]  # as a group's module declares it
    sys.modules[MODULE] = module
    yield group
    del sys.modules[MODULE]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_every_group_loads_what_is_listed(group: LazyGroup) -> None:
    """The module of each group can be loaded and declares the listed operations, in their order."""
    operations = group.operations
    assert operations
    assert [one.loaded() for one in group.endpoints] == list(operations)


def test_every_module_with_a_group_is_listed() -> None:
    """No edge module declares operations that the table of contents leaves out."""
    names = [f"functions.{module.name}" for module in pkgutil.iter_modules(functions.__path__)]
    declaring = {group.name for group in (getattr(import_module(name), "GROUP", None) for name in names) if group}
    assert declaring == {group.name for group in GROUPS}


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("sample", []),
        ("sample", ["GET things", "PUT things"]),
        ("sample", ["PUT things"]),
        ("sample", ["GET other"]),
        ("other", ["GET things"]),
    ],
)
def test_a_list_that_says_something_else_is_a_mistake(declared: Group, name: str, addresses: list[str]) -> None:
    """A group whose module declares more, less or something else than is listed does not load."""
    declared.endpoint("GET", "things")(_answer)
    with pytest.raises(LookupError, match="the table of contents lists"):
        _ = LazyGroup(name, MODULE, *addresses).operations


async def test_a_group_that_cannot_be_loaded_is_told_and_leaves_the_others_alone(
    declared: Group, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests to a group whose module fails are answered 500 with the reason in the log; others are answered."""
    declared.endpoint("GET", "things", access=Access.PUBLIC)(_answer)
    groups = LazyGroup("sample", MODULE, "GET things"), LazyGroup("lost", "no_such_module", "GET lost")
    served = RequestPipeline([one for group in groups for one in group.endpoints], _nobody, _everything)
    replies = [await served.serve(Request("GET", path, "", {}, b"")) for path in ("/lost", "/things", "/lost")]
    assert [reply.status for reply in replies] == [500, 200, 500]
    assert caplog.text.count("No module named 'no_such_module'") == 2


async def test_a_wrong_method_needs_no_module() -> None:
    """What is answered from the table of contents alone loads nothing."""
    group = LazyGroup("lost", "no_such_module", "GET lost")
    reply = await RequestPipeline(group.endpoints, _nobody, _everything).serve(Request("PUT", "/lost", "", {}, b""))
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("path", "status", "group"), [("/healthz", 200, "health"), ("/oi-api/warm-queries", 401, "warm-query-definitions")]
)
def test_a_request_loads_its_own_group_only(path: str, status: int, group: str, tmp_path: Path) -> None:
    """The first request of a process loads the module of its group and those of no other."""
    code = (
        "import asyncio, json, sys\n"
        "from functions.http_blueprint import get_pipeline\n"
        "from shared.http.messages import Request\n"
        "reply = asyncio.run(get_pipeline().serve(Request('GET', sys.argv[1], '', {}, b'')))\n"
        "print(json.dumps([reply.status, sorted(sys.modules)]))"
    )
    command = [sys.executable, "-c", code, path]
    environment = {"DATA_DIR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    answered, loaded = json.loads(done.stdout)
    assert answered == status
    assert [one.name for one in GROUPS if one._module in loaded] == [group]


async def _answer(_: Call) -> Reply:
    """Answer."""
    return Reply()


async def _nobody(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
    raise AssertionError(f"{authorization} was asked for, one of {accepted}")


async def _everything(feature: str) -> None:
    raise AssertionError(f"{feature} was asked for")
