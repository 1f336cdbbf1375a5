"""Tests of the SDK client's operations on orchestrations."""

from tests.emulators.durable.hosts import DurableHost


def test_event_of_the_sdk_client_reaches_the_orchestrator_as_json_text(durable: DurableHost) -> None:
    """Data of an event that the SDK's client sends reaches the orchestrator as JSON text, as on Azure."""
    links = durable.start_orchestration("waiter")
    durable.wait_for_suspension(links)
    assert durable.call_client("raise_event", instance_id=links["id"], event_name="answer", event_data={"a": 1}) is None
    assert durable.wait_for_end(links)["output"] == {"answer": '{"a": 1}', "doubled": 42}


def test_the_status_of_an_orchestration_has_input_output_and_history(durable: DurableHost) -> None:
    """The status of an orchestration has name, input and output and, on request, the history."""
    links = durable.start_orchestration("chain", 5)
    durable.wait_for_end(links)
    status = durable.call_client("get_status", instance_id=links["id"], show_history=True, show_history_output=True)
    assert (status["name"], status["runtimeStatus"], status["input"]) == ("chain", "Completed", "5")
    events = [(event["EventType"], event.get("FunctionName"), event.get("Result")) for event in status["events"]]
    assert events[:3] == [
        ("ExecutionStarted", "chain", None),
        ("TaskCompleted", "double", 10),
        ("TaskCompleted", "double", 20),
    ]
    assert events[-1][0] == "ExecutionCompleted"
    plain = durable.http.get(links["statusQueryGetUri"] + "&showInput=false").json()
    assert plain["input"] is None
    assert "historyEvents" not in plain


def test_the_status_of_a_failure_has_the_exception_text(durable: DurableHost) -> None:
    """The status of a failed orchestration has the exception's text, with code 200 or, if requested, 500."""
    links = durable.start_orchestration("failing")
    assert "ValueError: no a test" in durable.wait_for_end(links)["output"]
    plain = durable.http.get(links["statusQueryGetUri"])
    asked = durable.http.get(links["statusQueryGetUri"] + "&returnInternalServerErrorOnFailure=true")
    assert (plain.status_code, asked.status_code) == (200, 500)


def test_the_id_of_a_running_orchestration_cannot_be_used_again(durable: DurableHost) -> None:
    """An instance id can be used again only after its orchestration has ended."""
    links = durable.start_orchestration("waiter", id="only")
    assert "already exists" in str(
        durable.call_client("start_new", orchestration_function_name="chain", instance_id="only")
    )
    durable.call_client("terminate", instance_id="only", reason="enough")
    assert durable.call_client("start_new", orchestration_function_name="no_generator", instance_id="only") == "only"
    assert durable.wait_for_end(links)["output"] == "at once"


def test_starting_an_unknown_orchestrator_is_rejected(durable: DurableHost) -> None:
    """Starting an unknown orchestrator is rejected with the orchestrator's name."""
    error = durable.call_client("start_new", orchestration_function_name="nobody")["error"]
    assert "The function 'nobody' doesn't exist" in error


def test_a_terminated_orchestration_has_the_reason_as_output(durable: DurableHost) -> None:
    """A terminated orchestration has the reason as its output and accepts no more events."""
    links = durable.start_orchestration("waiter")
    durable.wait_for_suspension(links)
    assert durable.call_client("terminate", instance_id=links["id"], reason="not needed & so on") is None
    status = durable.wait_for_end(links)
    assert (status["runtimeStatus"], status["output"]) == ("Terminated", "not needed & so on")
    assert "is gone" in durable.call_client("raise_event", instance_id=links["id"], event_name="answer")["error"]
    assert "found" in durable.call_client("terminate", instance_id="nobody", reason="x")["error"]


def test_a_suspended_orchestration_runs_only_after_it_is_resumed(durable: DurableHost) -> None:
    """Events for a suspended orchestration are delivered after it is resumed."""
    links = durable.start_orchestration("waiter")
    durable.wait_for_suspension(links)
    durable.call_client("suspend", instance_id=links["id"], reason="a pause")
    durable.call_client("raise_event", instance_id=links["id"], event_name="answer", event_data=1)
    assert durable.wait_for_end(durable.start_orchestration("chain", 1))["runtimeStatus"] == "Completed"
    assert durable.http.get(links["statusQueryGetUri"]).json()["runtimeStatus"] == "Suspended"
    durable.call_client("resume", instance_id=links["id"], reason="go on")
    assert durable.wait_for_end(links)["output"] == {"answer": "1", "doubled": 42}


def test_a_restarted_orchestration_gets_the_original_input(durable: DurableHost) -> None:
    """A restarted orchestration gets the original input, under the same instance id or a new id."""
    links = durable.start_orchestration("chain", 5)
    durable.wait_for_end(links)
    fresh = durable.call_client("restart", instance_id=links["id"])
    assert fresh["id"] != links["id"]
    assert durable.wait_for_end(fresh)["output"][0] == 40
    same = durable.call_client("restart", instance_id=links["id"], restart_with_new_instance_id=False)
    assert same["id"] == links["id"]
    assert durable.wait_for_end(same)["output"][0] == 40
    running = durable.start_orchestration("waiter")
    place = durable.http.post(running["restartPostUri"] + "&restartWithNewInstanceId=false")
    assert place.status_code == 409


def test_a_purge_deletes_only_ended_orchestrations(durable: DurableHost) -> None:
    """Ended orchestrations can be purged by id or by condition; running orchestrations cannot."""
    ended, running = durable.start_orchestration("chain", 1), durable.start_orchestration("waiter")
    durable.wait_for_end(ended)
    assert durable.http.delete(running["purgeHistoryDeleteUri"]).status_code == 412
    assert durable.call_client("purge_instance_history", instance_id=ended["id"]) == 1
    assert durable.http.get(ended["statusQueryGetUri"]).status_code == 404
    assert durable.call_client("purge_instance_history", instance_id=ended["id"]) == 0
    durable.wait_for_end(durable.start_orchestration("no_generator"))
    assert durable.call_client("purge_instance_history_by", created_time_from="", runtime_status=["Failed"]) == 0
    assert durable.call_client("purge_instance_history_by", created_time_from="") == 1
    assert [status["instanceId"] for status in durable.call_client("get_status_all")] == [running["id"]]


def test_orchestrations_are_listed_by_status_and_id_prefix_in_pages(durable: DurableHost) -> None:
    """Orchestrations are listed by status and id prefix, in pages."""
    for number in range(5):
        durable.start_orchestration("waiter", id=f"batch-{number}")
    durable.wait_for_end(durable.start_orchestration("no_generator", id="done"))
    done = durable.call_client("get_status_by", runtime_status=["Completed", "Failed"])
    assert [status["instanceId"] for status in done] == ["done"]
    assert len(durable.call_client("get_status_by", instance_id_prefix="batch-")) == 5
    link = durable.start_orchestration("waiter", id="batch-5")["statusQueryGetUri"].replace(
        "instances/batch-5", "instances/"
    )
    seen: list[str] = []
    token = ""
    while not seen or token:
        headers = {"x-ms-continuation-token": token}
        page = durable.http.get(link + "&top=2&instanceIdPrefix=batch-", headers=headers)
        seen += [status["instanceId"] for status in page.json()]
        token = page.headers.get("x-ms-continuation-token", "")
    assert seen == [f"batch-{number}" for number in range(6)]


def test_a_foreign_continuation_token_is_rejected(durable: DurableHost) -> None:
    """A continuation token that the host did not issue is rejected with 400."""
    link = durable.start_orchestration("no_generator", id="x")["statusQueryGetUri"].replace("instances/x", "instances/")
    assert durable.http.get(link, headers={"x-ms-continuation-token": "%%%"}).status_code == 400


def test_an_orchestrator_can_read_the_version_of_its_start(durable: DurableHost) -> None:
    """An orchestrator can read the version with which it was started."""
    begun = durable.call_client("start_new", orchestration_function_name="versioned", instance_id="v", version="2.0")
    assert begun == "v"
    other = durable.start_orchestration("no_generator")
    link = other["statusQueryGetUri"].replace(other["id"], "v")
    assert durable.wait_for_end({"statusQueryGetUri": link})["output"] == ["2.0", ["2.1", None]]
