"""Tests of the worker that runs the package."""

import pickle
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from local.host import worker_protocol as protos
from tests.package.worker import find_foreign_modules, register_pickling, unpickle_object

STANDARD = Path(sysconfig.get_path("stdlib")).resolve()


def _create_module(name: str, file: Path) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = str(file)
    return module


def test_foreign_modules_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker reports loaded modules from a checkout or site-packages, but not those of the package or of Python."""
    package = tmp_path / "package"
    known = {"json": STANDARD / "json/__init__.py", "app": package / "function_app.py", "mine": tmp_path / "worker.py"}
    strange = {"local": tmp_path / "local/__init__.py", "pip": STANDARD / "site-packages/pip/__init__.py"}
    modules = {name: _create_module(name, file) for name, file in (known | strange).items()}
    namespace = ModuleType("azure")
    namespace.__path__ = [str(package / "azure"), str(tmp_path / "azure")]
    monkeypatch.setattr(sys, "modules", modules | {"azure": namespace, "builtins": ModuleType("builtins")})
    reported = find_foreign_modules(package, (tmp_path / "worker.py",))
    monkeypatch.undo()
    assert reported == [
        f"azure: {tmp_path / 'azure'}",
        f"local: {strange['local']}",
        f"pip: {strange['pip']}",
    ]


def test_worker_protocol_messages_can_be_pickled() -> None:
    """A message of the worker protocol is unchanged after pickling and unpickling."""
    register_pickling(protos)
    data = protos.TypedData(http=protos.RpcHttp(method="GET", body=protos.TypedData(bytes=b"1")))
    call = protos.InvocationRequest("f", "i", protos.ParameterBinding("request", data))
    received = unpickle_object(pickle.dumps(call), protos)
    assert (received.function_id, received.input_data[0].name) == ("f", "request")
    assert received.input_data[0].data.http.body.bytes == b"1"
