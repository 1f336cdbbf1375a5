"""The worker that runs the package tells modules of the package from those of the machine."""

import pickle
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from local.host import worker_protocol as protos
from tests.package.worker import modules_from_elsewhere, pickled_by_kind, unpickled

STANDARD = Path(sysconfig.get_path("stdlib")).resolve()


def _module(name: str, file: Path) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = str(file)
    return module


def test_modules_of_the_machine_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module from a checkout or from site-packages is reported; the package's and the standard library's are not."""
    package = tmp_path / "package"
    known = {"json": STANDARD / "json/__init__.py", "app": package / "function_app.py", "mine": tmp_path / "worker.py"}
    strange = {"local": tmp_path / "local/__init__.py", "pip": STANDARD / "site-packages/pip/__init__.py"}
    modules = {name: _module(name, file) for name, file in (known | strange).items()}
    namespace = ModuleType("azure")
    namespace.__path__ = [str(package / "azure"), str(tmp_path / "azure")]
    monkeypatch.setattr(sys, "modules", modules | {"azure": namespace, "builtins": ModuleType("builtins")})
    reported = modules_from_elsewhere(package, (tmp_path / "worker.py",))
    monkeypatch.undo()
    assert reported == [
        f"azure: {tmp_path / 'azure'}",
        f"local: {strange['local']}",
        f"pip: {strange['pip']}",
    ]


def test_messages_survive_the_way_between_the_processes() -> None:
    """A request and the values in it are the same after they were pickled."""
    pickled_by_kind(protos)
    data = protos.TypedData(http=protos.RpcHttp(method="GET", body=protos.TypedData(bytes=b"1")))
    call = protos.InvocationRequest("f", "i", protos.ParameterBinding("request", data))
    received = unpickled(pickle.dumps(call), protos)
    assert (received.function_id, received.input_data[0].name) == ("f", "request")
    assert received.input_data[0].data.http.body.bytes == b"1"
