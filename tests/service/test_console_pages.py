"""Tests of the web console's files and of sign-in links."""

import subprocess
import sys

import pytest

from tests.service.local_service import ROOT, Service, check_problem

BUILT = (ROOT / "static" / "console" / "index.html").is_file()
needs_build = pytest.mark.skipif(not BUILT, reason="the console is not built; run `make assets` (needs npm)")


def extract_code(link: str) -> str:
    """Return the code of a sign-in link."""
    return link.partition("#sign-in=")[2]


def test_root_redirects_to_the_console(service: Service) -> None:
    """`/` and the console's path without a trailing slash redirect to the console; other methods are rejected."""
    caller = service.create_anonymous_client()
    for path, status in (("/", 302), ("/console", 308)):
        reply = caller.get(path)
        assert (reply.status_code, reply.headers["location"]) == (status, "/console/")
    assert check_problem(caller.post("/"), 405, "METHOD_NOT_ALLOWED")["allow"] == ["GET", "HEAD"]


def test_console_runs_only_its_own_files(service: Service) -> None:
    """The console's page is public; its security policy forbids inline code, inline styles and other origins."""
    reply = service.create_anonymous_client().get("/console/")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().partition(" ")[::2] for part in reply.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in str(policy)
    streams = service.url.replace("http:", "ws:")
    assert policy["connect-src"] == f"'self' {streams}"


@needs_build
def test_hashed_files_are_cached_for_a_year(service: Service) -> None:
    """Browsers cache files with a hash in their name for a year, and revalidate the console's page at each visit."""
    caller = service.create_anonymous_client()
    page = caller.get("/console/")
    assert page.headers["cache-control"] == "no-cache"
    script = page.text.partition('src="')[2].partition('"')[0]
    assert script.startswith("/console/assets/")
    assert caller.get(script).headers["cache-control"] == "public, max-age=31536000, immutable"
    for name in ("assets/none.js", "assets/..%2F..%2Fexplorer%2Findex.html", "..%2Fexplorer%2Findex.html"):
        check_problem(caller.get(f"/console/{name}"), 404, "FILE_NOT_FOUND")


def test_a_sign_in_link_works_once(own_module_service: Service) -> None:
    """The first administrator can use a sign-in link once to get a token; an audit event records this token."""
    service = own_module_service
    assert service.sign_in_link.startswith(f"{service.url}/console/#sign-in=")
    caller = service.create_anonymous_client()
    body = {"code": extract_code(service.sign_in_link)}
    given = caller.post("/local/sign-in", json=body)
    assert given.status_code == 200
    assert given.headers["cache-control"] == "no-store"
    known = service.create_anonymous_client(bearer=given.json()["token"])
    who = known.get("/workspace/api/keys/whoami").json()
    assert (who["principal"], who["via"], who["expiresAt"]) == ("admin@t", "jwt", given.json()["expiresAt"])
    check_problem(caller.post("/local/sign-in", json=body), 401, "SIGN_IN_CODE_INVALID")
    [event] = known.get(
        "/oi-api/provenance/events/query", params={"target": "AccessControl", "actionType": "Token.Issued", "limit": 1}
    ).json()
    assert event["UserID"] == "admin@t"
    assert event["AfterState"]["madeWith"] == {"via": "signInLink", "credentialId": None}
    assert body["code"] not in service.read_log()


def test_sign_in_links_work_for_enabled_members(service: Service) -> None:
    """The command creates a sign-in link for any member, but the link of a disabled member gives no token."""

    def exchange_code(member: str) -> int:
        command = [sys.executable, "-m", "local.sign_in", "--data-dir", str(service.data_dir), "--as", member]
        link = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
        reply = service.create_anonymous_client().post("/local/sign-in", json={"code": extract_code(link)})
        if reply.status_code == 200:
            who = service.create_anonymous_client(bearer=reply.json()["token"]).get("/workspace/api/keys/whoami").json()
            assert who["principal"] == member
        return reply.status_code

    assert [exchange_code(member) for member in ("viewer@t", "nobody@t")] == [200, 401]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"code": 1}', b"{}"])
def test_the_exchange_of_a_sign_in_code_requires_a_code(service: Service, body: bytes) -> None:
    """The exchange of a sign-in code is rejected with 400 without a code, and with 405 for other methods than POST."""
    check_problem(service.create_anonymous_client().post("/local/sign-in", content=body), 400, "INVALID_REQUEST")
    check_problem(service.create_anonymous_client().get("/local/sign-in"), 405, "METHOD_NOT_ALLOWED")


def test_a_sign_in_body_has_at_most_1024_bytes(service: Service) -> None:
    """A sign-in request of more than 1,024 bytes is rejected before its body is parsed."""
    body = b'{"code":[' + b"1," * 520 + b"1]}"
    check_problem(service.create_anonymous_client().post("/local/sign-in", content=body), 413, "BODY_TOO_LARGE")


def test_console_configuration_has_no_sign_in_settings_without_entra(service: Service) -> None:
    """Without Entra ID, the console's configuration contains no sign-in settings."""
    reply = service.create_anonymous_client().get("/console/config.json")
    assert (reply.status_code, reply.json()) == (200, {"entra": None})
    assert reply.headers["cache-control"] == "no-cache"
