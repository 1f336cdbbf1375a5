"""Tests that all processes reject a revoked credential within 15 seconds."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import jwt
import pytest

from tests.service.conftest import WORKSPACE
from tests.service.local_service import ROOT, Service, check_problem, wait_until

PROMISED_SECONDS = 15.0
REVOKE = """
import asyncio, sys
from pathlib import Path
from shared.backends.embedded.credentials import SCHEMA, SqliteCredentialStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.timestamps import now

async def main():
    database = SqliteDatabase(Path(sys.argv[1]), SCHEMA)
    store = SqliteCredentialStore(database)
    revoke_key, revoke_token = store.revoke_key_and_find_pending_event, store.revoke_token_and_find_pending_event
    await {"key": revoke_key, "token": revoke_token}[sys.argv[2]](sys.argv[3], now())
    await database.close()

asyncio.run(main())
"""
OTHER = """
import asyncio, sys
from pathlib import Path
from shared.settings import Settings
from shared.wiring import Services
from shared.auth.principals import CredentialKind
from shared.errors import WorkspaceError

async def main():
    app = Services(Settings.read({"DATA_DIR": sys.argv[1]}))
    accepted = frozenset({CredentialKind.JWT, CredentialKind.API_KEY})
    callers = {}
    for line in sys.stdin:
        action, credential = line.split()
        try:
            if action == "check":
                callers[credential] = await app.access.authenticator(f"Bearer {credential}", accepted)
                reply = "LET_IN"
            elif action == "mint":
                reply = (await app.access.token_issuer.issue_token(callers[credential], None, None)).token
            else:
                reply = (await app.access.api_keys.create(callers[credential], "made elsewhere")).api_key
        except WorkspaceError as error:
            reply = error.code
        print(reply, flush=True)
    await app.close()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def refreshing_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service that refreshes its list of revoked credentials as often as a deployed service does."""
    running = Service(tmp_path_factory.mktemp("revocation") / "data", WORKSPACE).start()
    yield running
    running.stop()


class Instance:
    """Second service process over the same store, which checks credentials."""

    def __init__(self, data_dir: Path) -> None:
        command = [sys.executable, "-c", OTHER, str(data_dir)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def check_credential(self, credential: str) -> str:
        """Return `LET_IN` if the process accepts a credential, or else the error code of the rejection."""
        return self.run("check", credential)

    def run(self, action: str, credential: str) -> str:
        """Return the result of an action, or the error code.

        The process does not authenticate a credential again to ``mint`` a token or to ``create`` a key with it, like a
        process that does not know a revocation yet.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{action} {credential}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """Stop the process."""
        self._process.communicate(timeout=30)


@pytest.fixture(scope="module")
def other_process(refreshing_service: Service) -> Iterator[Instance]:
    """Return a second process over the store of the service."""
    running = Instance(refreshing_service.data_dir)
    yield running
    running.close()


def _request_whoami_status(client: httpx.Client) -> int:
    return client.get("/workspace/api/keys/whoami").status_code


@pytest.mark.parametrize("kind", ["key", "token"])
def test_the_service_rejects_a_credential_that_another_process_revoked(refreshing_service: Service, kind: str) -> None:
    """The service rejects a credential that it accepted before, after another process has revoked it in the store."""
    created = (
        refreshing_service.create_anonymous_client(refreshing_service.read_api_key("editor@t"))
        .post("/workspace/api/keys", json={"name": f"lost {kind}"})
        .json()
    )
    by_key = refreshing_service.create_anonymous_client(created["apiKey"])
    token = by_key.get("/workspace/api/keys/jwt").json()["Token"]
    by_token = refreshing_service.create_anonymous_client(token)
    assert (_request_whoami_status(by_key), _request_whoami_status(by_token)) == (200, 200)
    name = created["keyId"] if kind == "key" else jwt.decode(token, options={"verify_signature": False})["jti"]
    command = [sys.executable, "-c", REVOKE, str(refreshing_service.data_dir / "workspace.sqlite"), kind, name]
    subprocess.run(command, cwd=ROOT, check=True, timeout=60)
    revoked_at = time.monotonic()
    wait_until(lambda: _request_whoami_status(by_token), lambda status: status == 401, PROMISED_SECONDS)
    if kind == "key":
        left = PROMISED_SECONDS - (time.monotonic() - revoked_at)
        wait_until(lambda: _request_whoami_status(by_key), lambda status: status == 401, left)
    else:
        assert _request_whoami_status(by_key) == 200


def test_another_process_rejects_a_revoked_token(refreshing_service: Service, other_process: Instance) -> None:
    """Another process rejects a token that it accepted before, after the service has revoked the token."""
    client = refreshing_service.create_client("viewer@t")
    token = client.headers["Authorization"].removeprefix("Bearer ")
    assert other_process.check_credential(token) == "LET_IN"
    jti = jwt.decode(token, options={"verify_signature": False})["jti"]
    assert client.delete(f"/workspace/api/keys/jwt/{jti}").status_code == 204
    check_problem(client.get("/workspace/api/keys/whoami"), 401, "UNAUTHENTICATED")
    wait_until(lambda: other_process.check_credential(token), lambda word: word == "UNAUTHENTICATED", PROMISED_SECONDS)


def test_revoking_a_key_revokes_its_tokens(refreshing_service: Service, other_process: Instance) -> None:
    """Both processes reject the tokens of a revoked API key."""
    owner = refreshing_service.create_anonymous_client(refreshing_service.read_api_key("editor@t"))
    created = owner.post("/workspace/api/keys", json={"name": "gone"}).json()
    token = refreshing_service.create_anonymous_client(created["apiKey"]).get("/workspace/api/keys/jwt").json()["Token"]
    wait_until(
        lambda: other_process.check_credential(created["apiKey"]), lambda word: word == "LET_IN", PROMISED_SECONDS
    )
    assert other_process.check_credential(token) == "LET_IN"
    assert owner.delete(f"/workspace/api/keys/{created['keyId']}").status_code == 204
    for credential in (token, created["apiKey"]):
        wait_until(
            lambda credential=credential: other_process.check_credential(credential),  # type: ignore[misc]  # bound now
            lambda word: word == "UNAUTHENTICATED",
            PROMISED_SECONDS,
        )


@pytest.mark.parametrize("kind", ["key", "token"])
def test_another_process_cannot_extend_a_revoked_credential(
    refreshing_service: Service, other_process: Instance, kind: str
) -> None:
    """A process that does not know a revocation yet creates no tokens and keys with the revoked key or token."""
    owner = refreshing_service.create_anonymous_client(refreshing_service.read_api_key("editor@t"))
    created = owner.post("/workspace/api/keys", json={"name": "leaked"}).json()
    credential, address = created["apiKey"], f"/workspace/api/keys/{created['keyId']}"
    if kind == "token":
        credential = (
            refreshing_service.create_anonymous_client(credential).get("/workspace/api/keys/jwt").json()["Token"]
        )
        address = f"/workspace/api/keys/jwt/{jwt.decode(credential, options={'verify_signature': False})['jti']}"
    wait_until(lambda: other_process.check_credential(credential), lambda word: word == "LET_IN", PROMISED_SECONDS)
    assert other_process.run("mint", credential).count(".") == 2
    assert owner.delete(address).status_code == 204
    names = {key["name"] for key in owner.get("/workspace/api/keys").json()["keys"]}
    assert other_process.run("mint", credential) == "UNAUTHENTICATED"
    assert other_process.run("create", credential) == "UNAUTHENTICATED"
    assert {key["name"] for key in owner.get("/workspace/api/keys").json()["keys"]} == names


def test_rejections_do_not_reveal_which_keys_exist(refreshing_service: Service) -> None:
    """An unknown key, a wrong secret, a revoked key and a disabled member's key get the same reply."""
    owner = refreshing_service.create_anonymous_client(refreshing_service.read_api_key("editor@t"))
    created = owner.post("/workspace/api/keys", json={"name": "revoked"}).json()
    owner.delete(f"/workspace/api/keys/{created['keyId']}")
    good = refreshing_service.read_api_key("editor@t")
    bad = [
        f"oik_AAAAAAAA_{good[-43:]}",
        good[:-43] + "A" * 43,
        created["apiKey"],
        refreshing_service.read_api_key("gone@t"),
        "oik_",
        good[:-1],
        "oik_" + good[4:].lower(),
    ]
    answers = set()
    for key in bad:
        reply = refreshing_service.create_anonymous_client(key).get("/workspace/api/keys/whoami")
        details = check_problem(reply, 401, "UNAUTHENTICATED")
        details.pop("traceId")
        answers.add((repr(sorted(details.items())), tuple(sorted(set(reply.headers) - {"date", "x-request-id"}))))
    assert len(answers) == 1, answers
