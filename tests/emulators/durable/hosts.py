"""Host with a sample app that uses Durable Functions."""

from collections.abc import Callable
from typing import Any

import httpx

APP = """
from datetime import timedelta
import azure.durable_functions as df
steps = df.Blueprint(http_auth_level=func.AuthLevel.ANONYMOUS)

@steps.route(route="start/{name}")
@steps.durable_client_input(client_name="client")
async def start(req: func.HttpRequest, client: df.DurableOrchestrationClient) -> func.HttpResponse:
    body = req.get_body()
    instance = await client.start_new(
        req.route_params["name"], req.params.get("id"), json.loads(body) if body else None
    )
    return client.create_check_status_response(req, instance)

@steps.route(route="client/{operation}")
@steps.durable_client_input(client_name="client")
async def client(req: func.HttpRequest, client: df.DurableOrchestrationClient) -> func.HttpResponse:
    from datetime import datetime, timezone
    arguments = req.get_json()
    if "runtime_status" in arguments:
        arguments["runtime_status"] = [df.OrchestrationRuntimeStatus(name) for name in arguments["runtime_status"]]
    if "created_time_from" in arguments:
        arguments["created_time_from"] = datetime(2020, 1, 1, tzinfo=timezone.utc)
    try:
        result = await getattr(client, req.route_params["operation"])(**arguments)
    except Exception as error:
        return func.HttpResponse(json.dumps({"error": str(error)}), status_code=422)
    if isinstance(result, list):
        result = [one.to_json() for one in result]
    if hasattr(result, "to_json"):
        result = result.to_json() | {"events": getattr(result, "historyEvents", None)}
    return func.HttpResponse(json.dumps(getattr(result, "instances_deleted", result)))

@steps.orchestration_trigger(context_name="context", orchestration="waiter")
def waits_for_event(context):
    context.set_custom_status("waiting")
    answer = yield context.wait_for_external_event("answer")
    doubled = yield context.call_activity(double, 21)
    return {"answer": answer, "doubled": doubled}

@steps.orchestration_trigger(context_name="context")
def no_generator(context):
    return "at once"

@steps.orchestration_trigger(context_name="context")
def versioned(context):
    inner = None
    if context.get_input() is None:
        inner = yield context.call_sub_orchestrator("versioned", "inner", version="2.1")
    return [context.version, inner]

@steps.orchestration_trigger(context_name="context")
def failing(context):
    yield context.call_activity("refuse", {"why": "a test"})

@steps.activity_trigger(input_name="value")
async def refuse(value: dict) -> None:
    raise ValueError("no " + value["why"])

@steps.activity_trigger(input_name="value")
async def double(value: int) -> int:
    return value * 2

@steps.activity_trigger(input_name="value")
def blocking(value: dict) -> dict:
    return {"got": value}

@steps.activity_trigger(input_name="number")
async def gated(number: int) -> int:
    record(["gated", number])
    while number % 2 and not (DATA / "open").exists():
        await asyncio.sleep(0.005)
    return number * number

@steps.orchestration_trigger(context_name="context")
def chain(context):
    value = context.get_input()
    for _ in range(3):
        value = yield context.call_activity(double, value)
    shown = yield context.call_activity("blocking", {"text": "aé"})
    return [value, shown]

@steps.orchestration_trigger(context_name="context")
def fan_out(context):
    numbers = context.get_input()
    squares = yield context.task_all([context.call_activity(gated, number) for number in range(numbers)])
    return squares

@steps.activity_trigger(input_name="number")
async def noted(number: int) -> int:
    record(number)
    return number

@steps.orchestration_trigger(context_name="context")
def long_way(context):
    begun = context.get_input()
    kept = []
    for step in range(begun, begun + 5):
        options = df.RetryOptions(10, 2)
        tasks = [context.call_activity_with_retry(noted, options, step * 100 + n) for n in range(10)]
        tasks.append(context.create_timer(context.current_utc_datetime + timedelta(milliseconds=20)))
        tasks.append(context.call_sub_orchestrator("chain", step))
        *numbers, _, chained = yield context.task_all(tasks)
        kept.append(numbers + [chained[0]])
    return kept

app.register_functions(steps)
"""


class DurableHost:
    """Running host with the sample app, and functions that send requests to it."""

    def __init__(self, start_host: Callable[..., Any], http: httpx.Client) -> None:
        self._start_host = start_host
        self.http = http
        self.start_host()

    def start_host(self) -> None:
        """Start a host with the data directory of the previous host."""
        self.host = self._start_host(APP)

    def start_orchestration(self, name: str, input_value: object = None, **query: str) -> dict[str, str]:
        """Start an orchestration through the app and return its management links."""
        answer = self.http.post(f"{self.host.url}/start/{name}", json=input_value, params=query)
        assert answer.status_code == 202, answer.text
        links: dict[str, str] = answer.json()
        return links

    def call_client(self, operation: str, **arguments: object) -> Any:
        """Call a method of the SDK's client in the app and return the result."""
        return self.http.post(f"{self.host.url}/client/{operation}", json=arguments).json()

    def wait_for_suspension(self, links: dict[str, str]) -> None:
        """Wait until an orchestration waits for its external event."""
        self.host.wait_until(
            lambda: self.http.get(self.replace_address(links["statusQueryGetUri"])).json()["customStatus"] == "waiting"
        )

    def replace_address(self, link: str) -> str:
        """Return a management link with the address of the current host."""
        return str(httpx.URL(link).copy_with(port=httpx.URL(self.host.url).port))

    def wait_for_end(self, links: dict[str, str]) -> dict[str, Any]:
        """Wait until an orchestration has ended and return its status."""
        answers: list[httpx.Response] = []

        def has_ended() -> bool:
            answers.append(self.http.get(self.replace_address(links["statusQueryGetUri"])))
            return answers[-1].status_code != 202

        self.host.wait_until(has_ended)
        status: dict[str, Any] = answers[-1].json()
        return status
