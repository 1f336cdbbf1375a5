"""The sample app of Durable Functions on a real host."""

from collections.abc import Callable
from typing import Any

import httpx

APP = """
from datetime import timedelta
import azure.durable_functions as df
app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)

@app.route(route="start/{name}")
@app.durable_client_input(client_name="client")
async def start(req: func.HttpRequest, client: df.DurableOrchestrationClient) -> func.HttpResponse:
    body = req.get_body()
    instance = await client.start_new(
        req.route_params["name"], req.params.get("id"), json.loads(body) if body else None
    )
    return client.create_check_status_response(req, instance)

@app.activity_trigger(input_name="value")
async def double(value: int) -> int:
    return value * 2

@app.activity_trigger(input_name="value")
def blocking(value: dict) -> dict:
    return {"got": value}

@app.activity_trigger(input_name="number")
async def gated(number: int) -> int:
    record(["gated", number])
    while number % 2 and not (DATA / "open").exists():
        await asyncio.sleep(0.005)
    return number * number

@app.orchestration_trigger(context_name="context")
def chain(context):
    value = context.get_input()
    for _ in range(3):
        value = yield context.call_activity(double, value)
    shown = yield context.call_activity("blocking", {"text": "aé"})
    return [value, shown]

@app.orchestration_trigger(context_name="context")
def fan_out(context):
    numbers = context.get_input()
    squares = yield context.task_all([context.call_activity(gated, number) for number in range(numbers)])
    return squares
"""


class DurableHost:
    """A running host over the sample app, and what a client does with it."""

    def __init__(self, start_host: Callable[..., Any], http: httpx.Client) -> None:
        self._start_host = start_host
        self.http = http
        self.begin()

    def begin(self) -> None:
        """Start a host over the same data directory."""
        self.host = self._start_host(APP)

    def start(self, name: str, given: object = None, **query: str) -> dict[str, str]:
        """Start an orchestration through the app and return its links."""
        answer = self.http.post(f"{self.host.url}/start/{name}", json=given, params=query)
        assert answer.status_code == 202, answer.text
        links: dict[str, str] = answer.json()
        return links

    def here(self, link: str) -> str:
        """Return a link, which a host before this one may have given, with the address of this one."""
        return str(httpx.URL(link).copy_with(port=httpx.URL(self.host.url).port))

    def ended(self, links: dict[str, str]) -> dict[str, Any]:
        """Wait for the end of an orchestration and return its status."""
        answers: list[httpx.Response] = []

        def done() -> bool:
            answers.append(self.http.get(self.here(links["statusQueryGetUri"])))
            return answers[-1].status_code != 202

        self.host.until(done)
        status: dict[str, Any] = answers[-1].json()
        return status
