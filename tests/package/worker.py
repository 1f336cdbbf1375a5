"""Runs an unpacked package as the platform's Python worker does: ``python -I -S worker.py OPTIONS``.

This process can import nothing but the standard library and the package. It receives the messages of the language
worker protocol from the host's process over a socket, passes them to the package's worker library, and returns the
replies. It replaces the app's sender and the credentials of its stores, and nothing else. When the host closes the
socket it prints which modules were loaded from elsewhere.
"""

import asyncio
import copyreg
import functools
import importlib.util
import io
import json
import pickle
import socket
import struct
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self

SITE_PACKAGES: Final = ".python_packages/lib/site-packages"
PROTOCOL: Final = ("protos", "local.host.worker_protocol")
"""Names of the protocol's module, in this process and in the host's process."""

SIZE: Final = struct.Struct(">Q")


def register_pickling(protos: ModuleType) -> None:
    """Register pickling of ``TypedData`` as ``TypedData(kind=value)``, because it has no attributes without a kind."""

    def reduce_message(data: Any) -> tuple[Any, ...]:
        return functools.partial(protos.TypedData, **{data.kind: data.value}), ()

    copyreg.pickle(protos.TypedData, reduce_message)


class _Unpickler(pickle.Unpickler):
    """Unpickler that finds the protocol's classes although the other process names their module differently."""

    def __init__(self, data: bytes, protos: ModuleType) -> None:
        super().__init__(io.BytesIO(data))
        self._protos = protos

    def find_class(self, module: str, name: str) -> Any:
        """Return a protocol class by the names of its module and class."""
        return getattr(self._protos, name) if module in PROTOCOL else super().find_class(module, name)


def unpickle_object(data: bytes, protos: ModuleType) -> Any:
    """Unpickle an object that the other process has pickled.

    Args:
        data: the pickled bytes.
        protos: module of the protocol's messages in this process.
    """
    return _Unpickler(data, protos).load()


class Worker:
    """Server that executes the host's requests with the package's worker library.

    Args:
        folder: folder of the unpacked package.
        options: credentials of the stores: ``cosmosKey``, ``blobs``, ``vaultToken``, ``vaultCertificate``.
        protos: module of the protocol's messages.
    """

    def __init__(self, folder: Path, options: dict[str, str], protos: ModuleType) -> None:
        self._folder = folder
        self._options = options
        self._protos = protos
        self._tasks: set[asyncio.Task[None]] = set()
        self.functions = 0

    async def serve_requests(self, connection: socket.socket) -> None:
        """Execute each request in its own task until the host closes the connection."""
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            while True:
                (size,) = SIZE.unpack(await reader.readexactly(SIZE.size))
                parameters = unpickle_object(await reader.readexactly(size), self._protos)
                task = asyncio.create_task(self._handle_connection(parameters, writer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            await self._close()

    async def _handle_connection(self, parameters: tuple[int, str, Any], writer: asyncio.StreamWriter) -> None:
        number, name, content = parameters
        try:
            data = pickle.dumps((number, await self._call_worker(name, content), ""))
        except Exception as error:  # noqa: BLE001  the host tells what happened
            data = pickle.dumps((number, None, f"{type(error).__name__}: {error}"))
        writer.write(SIZE.pack(len(data)) + data)

    async def _call_worker(self, name: str, content: Any) -> Any:
        import azure_functions_runtime as runtime  # noqa: PLC0415  from the package

        request = self._protos.WorkerRequest()
        request.request = content
        request.properties.update(host="127.0.0.1", protos=self._protos)
        if name == "worker_init_request":
            runtime.start_threadpool_executor()
        answer = await getattr(runtime, name)(request)
        if name == "worker_init_request":
            replace_credentials(self._options)
        if name == "functions_metadata_request":
            self.functions = len(answer.function_metadata_results or [])
        return answer

    async def _close(self) -> None:
        """Close the app's connections, because warnings about open connections would hide the app's log."""
        if self.functions:
            from shared import wiring  # noqa: PLC0415  from the package

            await wiring.services().close()


def replace_credentials(options: dict[str, str]) -> None:
    """Replace the managed identity with keys of the emulators, and the Event Hubs sender with a file."""
    from azure.core.credentials import AccessToken  # noqa: PLC0415  these are the package's

    from shared import wiring  # noqa: PLC0415
    from shared.backends.azure.blobs import BlobAccount  # noqa: PLC0415
    from shared.backends.azure.cosmos_account import CosmosAccount  # noqa: PLC0415
    from shared.backends.azure.key_vault import Vault  # noqa: PLC0415
    from shared.backends.embedded.hub import HubWriter  # noqa: PLC0415
    from shared.telemetry.acceptance import InstrumentedSender  # noqa: PLC0415

    class Token:
        """Credential with one token that never expires."""

        async def get_token(self, *_: str, **__: Any) -> AccessToken:
            return AccessToken(options["vaultToken"], 4_000_000_000)

        async def close(self) -> None:
            """Do nothing: this fake credential has no connections."""

        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *_: object) -> None:
            return None

    services = wiring.services()
    configured = services.settings
    trusted = {"connection_verify": options["vaultCertificate"], "verify_challenge_resource": False}
    backends = services.backends
    backends.cosmos = CosmosAccount(configured.cosmos_endpoint, configured.cosmos_database, key=options["cosmosKey"])
    backends.blob_account = BlobAccount("", connection_string=options["blobs"])
    backends.key_vault = Vault(configured.key_vault_uri, credential=Token(), options=trusted)
    services.telemetry.sender = InstrumentedSender(HubWriter(configured.data_dir / "hub.sqlite"), "eventhubs")


def find_foreign_modules(folder: Path, worker_files: tuple[Path, ...]) -> list[str]:
    """Return loaded modules that are not part of the package, the standard library or this worker.

    Args:
        folder: folder of the unpacked package.
        worker_files: files of the worker.
    """
    standard = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    found = []
    for name, module in sorted(sys.modules.items()):
        for place in _iterate_origins(module):
            installed = any(part in {"site-packages", "dist-packages"} for part in place.parts)
            known = place.is_relative_to(folder) or place in worker_files
            if not known and (installed or not any(place.is_relative_to(each) for each in standard)):
                found.append(f"{name}: {place}")
    return found


def _iterate_origins(module: ModuleType) -> Iterator[Path]:
    """Yield the paths of the files of a module; built-in, frozen and generated modules have none."""
    file = getattr(module, "__file__", None)
    for place in [file] if file else list(getattr(module, "__path__", None) or ()):
        yield Path(place).resolve()


def main() -> None:
    """Serve the host process that started this process."""
    options = json.loads(sys.argv[1])
    folder = Path(options["folder"]).resolve()
    # The order in which the platform's worker looks: dependencies, the standard library, the app.
    sys.path[:] = [str(folder / SITE_PACKAGES), *sys.path, str(folder)]
    spec = importlib.util.spec_from_file_location(PROTOCOL[0], options["protocol"])
    assert spec is not None
    assert spec.loader is not None
    protos = importlib.util.module_from_spec(spec)
    sys.modules[PROTOCOL[0]] = protos
    spec.loader.exec_module(protos)
    register_pickling(protos)
    worker = Worker(folder, options, protos)
    asyncio.run(worker.serve_requests(socket.socket(fileno=options["socket"])))
    own = Path(__file__).resolve(), Path(options["protocol"]).resolve()
    report = {
        "path": sys.path,
        "functions": worker.functions,
        "modules": len(sys.modules),
        "elsewhere": find_foreign_modules(folder, own),
    }
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
