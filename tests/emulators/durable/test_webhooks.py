"""Tests of the HTTP API of the Durable Task extension."""

import pytest

from tests.emulators.durable.hosts import DurableHost


def test_event_of_an_http_client_reaches_the_orchestrator_unchanged(durable: DurableHost) -> None:
    """The JSON body of an event that is sent over HTTP reaches the orchestrator as the same value."""
    links = durable.start_orchestration("waiter")
    event = links["sendEventPostUri"].replace("{eventName}", "answer")
    assert durable.http.post(event, json={"a": [1, None]}).status_code == 202
    assert durable.wait_for_end(links)["output"]["answer"] == {"a": [1, None]}
    assert durable.http.post(event, json=1).status_code == 410
    assert durable.http.post(event.replace(links["id"], "nobody"), json=1).status_code == 404


@pytest.mark.parametrize(("content", "kind"), [(b"1", "text/plain"), (b"{", "application/json")])
def test_an_event_over_http_must_be_json(durable: DurableHost, content: bytes, kind: str) -> None:
    """An event without a JSON body or content type is rejected."""
    event = durable.start_orchestration("waiter")["sendEventPostUri"].replace("{eventName}", "answer")
    assert durable.http.post(event, content=content, headers={"content-type": kind}).status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        "top=" + "9" * 5000,
        "top=0&runtimeStatus=Nothing",
        "createdTimeFrom=0001-01-01T00:00:00%2B23:59",
        "instanceIdPrefix=%00%ff'--",
    ],
)
def test_invalid_filter_parameters_are_ignored(durable: DurableHost, query: str) -> None:
    """Invalid filter parameters are ignored, as on Azure."""
    link = durable.start_orchestration("no_generator", id="x")["statusQueryGetUri"].replace("instances/x", "instances/")
    assert durable.http.get(f"{link}&{query}").status_code == 200


def test_starting_an_orchestration_over_http_can_wait_for_the_output(durable: DurableHost) -> None:
    """A start with a timeout returns the output; if the timeout is over first, it returns the links."""
    link = durable.start_orchestration("waiter")["statusQueryGetUri"]
    base, code = link.split("/instances/")[0], link.split("code=")[1]
    query = {"timeout": "20", "pollingInterval": "0.02", "code": code}
    ended = durable.http.post(f"{base}/orchestrators/failing", params=query)
    assert (ended.status_code, ended.json()["runtimeStatus"]) == (200, "Failed"), ended.text
    ended = durable.http.post(f"{base}/orchestrators/chain", params=query, json="5")
    assert (ended.status_code, ended.json()[0]) == (200, 40)
    late = durable.http.post(f"{base}/orchestrators/waiter", params=query | {"timeout": "0.05"})
    assert (late.status_code, "statusQueryGetUri" in late.json()) == (202, True)


def test_requests_for_rewind_and_entities_are_rejected(durable: DurableHost) -> None:
    """Requests for rewind and for entities get 501; the reply states the reason."""
    links = durable.start_orchestration("waiter")
    assert "cannot rewind" in durable.call_client("rewind", instance_id=links["id"], reason="x")["error"]
    entities = links["statusQueryGetUri"].replace(f"instances/{links['id']}", "entities/counter/a")
    assert durable.http.get(entities).status_code == 501


def test_the_management_api_requires_its_system_key(durable: DurableHost) -> None:
    """The management API requires the system key, which only the file's owner can read and which is never logged."""
    link = durable.start_orchestration("waiter")["statusQueryGetUri"]
    key = link.split("code=")[1]
    for url in (link.split("?")[0], link.replace(key, "x" * len(key)), link.replace("instances", "rpc/x/instances")):
        assert (durable.http.get(url.replace(key, "wrong")).status_code) == 401
    page = durable.http.get(link, headers={"origin": "http://evil.example"})
    assert (page.status_code, page.json()["code"]) == (403, "ADMINISTRATION_IS_LOCAL")
    kept = durable.host.data_dir / "durable.key"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (key, 0o600)
    assert durable.host.terminate() == 0
    assert key not in durable.host.read_log()
