"""Tests of endpoint groups that are imported at their first request."""

import json
import pkgutil
import subprocess
import sys
import threading
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
from tests.service.local_service import ROOT

MODULE = "group_of_a_test"


@pytest.fixture
def declared_group() -> Iterator[Group]:
    """Yield an empty endpoint group in a temporary module that can be imported."""
    module, group = ModuleType(MODULE), Group("sample")
    module.GROUP = group  # type: ignore[attr-defined]  # as a group's module declares it
    sys.modules[MODULE] = module
    yield group
    del sys.modules[MODULE]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_every_group_declares_its_listed_operations(group: LazyGroup) -> None:
    """The module of each group declares exactly the listed operations, in the same order."""
    operations = group.operations
    assert operations
    assert [one.load_operation() for one in group.endpoints] == list(operations)


def test_every_module_with_an_endpoint_group_is_listed() -> None:
    """Each module with a ``GROUP`` is in ``functions.GROUPS``."""
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
def test_loading_a_group_that_differs_from_its_list_fails(
    declared_group: Group, name: str, addresses: list[str]
) -> None:
    """Loading an endpoint group fails if its module declares other operations than the list."""
    declared_group.endpoint("GET", "things")(_return_empty_reply)
    with pytest.raises(LookupError, match="GROUPS lists"):
        _ = LazyGroup(name, MODULE, *addresses).operations


def test_loading_a_group_with_another_rule_for_head_fails(declared_group: Group) -> None:
    """Loading an endpoint group fails if its module and the list disagree about the routes whose GET rejects HEAD."""
    declared_group.endpoint("GET", "things", allows_head=False)(_return_empty_reply)
    declared_group.endpoint("PUT", "things")(_return_empty_reply)
    addresses = "GET things", "PUT things"
    assert LazyGroup("sample", MODULE, *addresses, routes_without_head=("things",)).operations
    with pytest.raises(LookupError, match="routes_without_head"):
        _ = LazyGroup("sample", MODULE, *addresses).operations


async def test_a_failed_import_affects_only_its_group(declared_group: Group, caplog: pytest.LogCaptureFixture) -> None:
    """If the import of an endpoint group fails, only its routes return 500; the log has the reason."""
    declared_group.endpoint("GET", "things", access=Access.PUBLIC)(_return_empty_reply)
    groups = LazyGroup("sample", MODULE, "GET things"), LazyGroup("lost", "no_such_module", "GET lost")
    served = RequestPipeline(
        [one for group in groups for one in group.endpoints], _refuse_authentication, _reject_feature
    )
    replies = [await served.serve(Request("GET", path, "", {}, b"")) for path in ("/lost", "/things", "/lost")]
    assert [reply.status for reply in replies] == [500, 200, 500]
    assert caplog.text.count("No module named 'no_such_module'") == 2


async def test_a_wrong_method_imports_no_module() -> None:
    """The 405 reply to a wrong method does not import the group's module."""
    group = LazyGroup("lost", "no_such_module", "GET lost")
    reply = await RequestPipeline(group.endpoints, _refuse_authentication, _reject_feature).serve(
        Request("PUT", "/lost", "", {}, b"")
    )
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")


_SOURCE = """
import threading
from shared.http.messages import Reply
from shared.http.operations import Group

THREAD = threading.get_ident()
GROUP = Group("sample", lambda *_: Reply(405, b"own"))

@GROUP.endpoint("GET", "things")
async def read_things(call):
    '''Return an empty reply.'''
"""


async def test_a_wrong_method_imports_an_own_error_format_outside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 405 reply of a group with its own error format has this format; a worker thread imports the group."""
    (tmp_path / f"{MODULE}.py").write_text(_SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    group = LazyGroup("sample", MODULE, "GET things", has_own_error_format=True)
    served = RequestPipeline(group.endpoints, _refuse_authentication, _reject_feature)
    replies = [await served.serve(Request("PUT", "/things", "", {}, b"")) for _ in range(2)]
    assert [(reply.status, reply.body) for reply in replies] == [(405, b"own")] * 2
    assert threading.get_ident() != sys.modules.pop(MODULE).THREAD


@pytest.mark.parametrize(
    ("path", "status", "group"), [("/healthz", 200, "health"), ("/oi-api/warm-queries", 401, "warm-query-definitions")]
)
def test_a_request_imports_only_its_group(path: str, status: int, group: str, tmp_path: Path) -> None:
    """The first request imports the module of its group and no other group."""
    code = (
        "import asyncio, json, sys\n"
        "from functions.http_blueprint import get_pipeline\n"
        "from shared.http.messages import Request\n"
        "reply = asyncio.run(get_pipeline().serve(Request('GET', sys.argv[1], '', {}, b'')))\n"
        "print(json.dumps([reply.status, sorted(sys.modules)]))"
    )
    command = [sys.executable, "-c", code, path]
    environment = {"DATA_DIR": str(tmp_path)}
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    reply_status, loaded = json.loads(process.stdout)
    assert reply_status == status
    assert [one.name for one in GROUPS if one._module in loaded] == [group]


async def _return_empty_reply(_: Call) -> Reply:
    """Return an empty reply."""
    return Reply()


async def _refuse_authentication(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
    raise AssertionError(f"unexpected authentication: {authorization}, {accepted}")


async def _reject_feature(feature: str) -> None:
    raise AssertionError(f"unexpected feature: {feature}")
