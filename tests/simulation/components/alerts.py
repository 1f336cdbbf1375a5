"""Alerts component: several instances evaluate rules while the measured value changes."""

import json
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.simulation.chains import read_chains
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.world import World

_MEMBERS: Final = ("ann@t", "bob@t", "eve@t")
_THRESHOLD_RULES: Final = ("hot", "lasting", "edited")
_HOLD: Final = timedelta(seconds=40)
_RULES: Final = "oi-api/alert-rules"
_ALERTS: Final = "oi-api/alerts"
_RANKS: Final = {"pending": 0, "firing": 1, "resolved": 2}
_ENDED_CODES: Final = frozenset({"ALERT_RESOLVED", "ALERT_CHANGED"})
_HOT: Final = 100.0
_COLD: Final = 0.0


class AlertsComponent(Component):
    """Measured value that rises and falls while instances evaluate alert rules and members acknowledge alerts.

    The rule ``hot`` fires at once; the rule ``lasting`` fires after 40 seconds. Members disable, delete and create the
    rule ``edited``. The rule ``silent`` watches two connections.

    Invariants: a group has one active alert; a rule has at most one alert each time the value rises; no alert returns
    to an earlier state, and only pending alerts vanish; an alert has one acknowledgement with one audit event; after
    the last fault, the alerts follow the value; each alert that has fired is announced under one id, and so is its end.
    """

    name: ClassVar[str] = "alerts"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/alerts/evaluation.py",
        "shared/alerts/notifications.py",
        "shared/alerts/rule_evaluator.py",
        "shared/alerts/scheduler.py",
        "shared/alerts/service.py",
        "shared/backends/embedded/alerts.py",
        "functions/alert_rules.py",
        "functions/alerts.py",
    )
    background_jobs: ClassVar[tuple[str, ...]] = ("alerts",)
    weight: ClassVar[int] = 2
    cosmos_weight: ClassVar[int] = 1

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._rises = 0
        self._attempts: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._acknowledged: dict[str, tuple[str, str, str]] = {}
        self._final: dict[str, Any] = {}
        self._arrived: dict[str, int] = {}

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start the changes of the measured value, and the members."""
        choices = self.world.random
        yield self._change_value(choices.randint(2, 6))
        for number in range(choices.randint(1, 2)):
            yield self._change_alerts_often(number, choices.randint(4, 10))
        if choices.random() < 0.7:
            yield self._edit_rule(choices.randint(1, 5))

    def _set_value(self, value: float) -> None:
        self._rises += value > self.world.measured.get("heat", _COLD)
        self.world.measured["heat"] = value
        self.world.trace(f"the value becomes {value}")

    async def _change_value(self, count: int) -> None:
        for number in range(count):
            self._set_value(_COLD if number % 2 else _HOT)
            await self.world.sleep(self.world.random.random() * 60)

    async def _change_alerts_often(self, client: int, count: int) -> None:
        known: dict[str, Any] = {}
        choices = self.world.random
        for number in range(count):
            await self.world.sleep(choices.random() * 20)
            reply = await send_until_final(self.world, "viewer@t", "GET", f"{_ALERTS}?limit=1000")
            if reply is None:
                continue
            self._compare_with_earlier_list(known, reply.json["alerts"])
            # Sometimes, a member also acknowledges a resolved alert, which the service rejects.
            states = {"pending", "firing", *({"resolved"} if choices.random() < 0.1 else {})}
            found = [alert for alert in known.values() if alert["state"] in states]
            if found and choices.random() < 0.5:
                await self._acknowledge_alert(choices.choice(found), f"comment {client}-{number}")
            elif choices.random() < 0.2:
                await self._try_rule(choices.choice((*_THRESHOLD_RULES, "silent")), f"trial {client}-{number}")

    async def _try_rule(self, rule: str, key: str) -> None:
        listed = await send_until_final(self.world, "viewer@t", "GET", _RULES)
        if listed is not None:
            self.world.require(listed.status == 200, f"the rules got {listed.status}")
        reply = await send_until_final(self.world, "ann@t", "POST", f"{_RULES}/{rule}/evaluate", key=key)
        if reply is not None:
            is_deleted = reply.status == 404 and rule == "edited"
            self.world.require(reply.status == 200 or is_deleted, f"a trial got {reply.status} {reply.reply.body!r}")

    def _compare_with_earlier_list(self, earlier_alerts: dict[str, Any], listed: Iterable[Any]) -> None:
        """Compare a list of alerts with the list that the same client received before."""
        alerts = {alert["id"]: alert for alert in listed}
        for alert_id, before in earlier_alerts.items():
            after = alerts.get(alert_id)
            if after is None:
                may_vanish = before["state"] == "pending" and before["acknowledgedBy"] is None
                self.world.require(may_vanish, f"alert {alert_id}, which was {before['state']}, is no longer listed")
                continue
            is_later = _RANKS[before["state"]] <= _RANKS[after["state"]]
            self.world.require(is_later, f"alert {alert_id} goes back from {before['state']} to {after['state']}")
            for name in ("rule", "labels", "firedAt", "resolvedAt", "acknowledgedBy", "acknowledgedAt", "comment"):
                is_kept = before[name] in (None, after[name])
                self.world.require(is_kept, f"{name} of alert {alert_id} changed from {before[name]} to {after[name]}")
        for alert in alerts.values():
            self._check_alert_times(alert)
        if self.world.account is None:
            # The pages of a query of Cosmos DB are not of one moment.
            active = Counter(
                (alert["rule"], str(alert["labels"])) for alert in alerts.values() if alert["state"] != "resolved"
            )
            twice = [group for group, count in active.items() if count > 1]
            self.world.require(not twice, f"groups with several active alerts: {twice}")
        earlier_alerts.clear()
        earlier_alerts.update(alerts)

    def _check_alert_times(self, alert: Any) -> None:
        started, fired, resolved = (_parse_time(alert[name]) for name in ("startedAt", "firedAt", "resolvedAt"))
        is_ordered = fired is None or (started is not None and started <= fired <= (resolved or fired))
        self.world.require(is_ordered, f"the times of an alert are out of order: {alert}")
        if alert["rule"] == "lasting" and fired is not None and started is not None:
            self.world.require(fired - started >= _HOLD, f"an alert fired too early: {alert}")

    async def _acknowledge_alert(self, alert: Any, comment: str) -> None:
        member, alert_id = self.world.random.choice(_MEMBERS), alert["id"]
        self._attempts[alert_id].add((member, comment))
        path, key = f"{_ALERTS}/{alert_id}/acknowledge", comment if self.world.random.random() < 0.7 else ""
        reply = await send_until_final(self.world, member, "POST", path, {"comment": comment}, key=key)
        if reply is None:
            return
        if reply.status == 200:
            made = _read_acknowledgement(reply.json)
            self.world.require(made[:2] in self._attempts[alert_id], f"nobody sent the acknowledgement {made}")
            is_new = made[:2] == (member, comment)
            self.world.require(not is_new or alert["state"] != "resolved", f"{alert} was acknowledged after its end")
            first = self._acknowledged.setdefault(alert_id, made)
            self.world.require(made == first, f"alert {alert_id} was acknowledged as {first}, and then as {made}")
        else:
            is_possible = reply.code in _ENDED_CODES or (
                reply.code == "ALERT_NOT_FOUND" and alert["state"] == "pending" and alert_id not in self._acknowledged
            )
            self.world.require(is_possible, f"an acknowledgement of {alert} got {reply.status} {reply.code}")

    async def _edit_rule(self, count: int) -> None:
        for _ in range(count):
            await self.world.sleep(self.world.random.random() * 40)
            read = await send_until_final(self.world, "ann@t", "GET", f"{_RULES}/edited")
            if read is None:
                continue
            if read.status == 404:
                await self._put_rule({"if-none-match": "*"}, is_enabled=True)
            elif self.world.random.random() < 0.4:
                headers = {"if-match": read.get_header("etag")}
                await send_until_final(self.world, "ann@t", "DELETE", f"{_RULES}/edited", headers=headers)
            else:
                await self._put_rule({"if-match": read.get_header("etag")}, is_enabled=not read.json["enabled"])

    async def _put_rule(self, headers: Mapping[str, str], *, is_enabled: bool) -> None:
        body = _build_rule(is_enabled=is_enabled)
        if self.world.random.random() < 0.3:
            # A client may send a property that only the service sets; the service compares it with the stored value.
            body |= {"lookup": "edited"}
        reply = await send_until_final(self.world, "ann@t", "PUT", f"{_RULES}/edited", body, headers=headers)
        if reply is not None:
            self.world.require(reply.status in {200, 201, 412}, f"a rule got {reply.status} {reply.reply.body!r}")

    async def complete_work(self) -> None:
        """Raise and lower the measured value once more, then wait for the alerts and their webhook messages."""
        await send_until_done(self.world, "ann@t", "PUT", f"{_RULES}/edited", _build_rule(is_enabled=True))
        for value, state in ((_HOT, "firing"), (_COLD, "resolved")):
            self._set_value(value)
            while not await self._threshold_rules_are_in_state(state):
                await self.world.sleep(5)
        await send_until_done(self.world, "ann@t", "DELETE", f"{_RULES}/edited")
        while not (await self._has_expected_deliveries() and await self._are_audited()):
            await self.world.sleep(5)
        await self._check_pages()

    async def _list_alerts(self) -> list[Any]:
        reply = await send_until_done(self.world, "viewer@t", "GET", f"{_ALERTS}?limit=1000")
        self._compare_with_earlier_list(self._final, reply.json["alerts"])
        return list(self._final.values())

    async def _threshold_rules_are_in_state(self, state: str) -> bool:
        """Return whether all threshold rules have reached the given state: ``firing`` or ``resolved``."""
        listed = [alert for alert in await self._list_alerts() if alert["rule"] in _THRESHOLD_RULES]
        active = Counter(alert["rule"] for alert in listed if alert["state"] != "resolved")
        if state == "resolved":
            return not active
        fires = {alert["rule"] for alert in listed if alert["state"] == "firing"}
        return fires == set(_THRESHOLD_RULES) and max(active.values()) == 1

    async def _has_expected_deliveries(self) -> bool:
        """Return whether each alert has its expected webhook deliveries; fail if a delivery is unexpected."""
        deliveries = await self._list_deliveries()
        # The list is read later, because an alert is stored before it is announced.
        expected = {
            (alert["id"], kind)
            for alert in await self._list_alerts()
            for kind, time in (("alert.firing", alert["firedAt"]), ("alert.resolved", alert["resolvedAt"]))
            if alert["firedAt"] and time
        }
        found = Counter((each["event"]["data"]["alertId"], each["eventType"]) for each in deliveries)
        twice = [event for event, count in found.items() if count > 1]
        self.world.require(not twice, f"events with several ids: {twice}")
        # A failed evaluation is announced like an alert, but it is not in the list.
        labels = {each["event"]["data"]["alertId"]: each["event"]["data"]["labels"] for each in deliveries}
        failures = {one for one in labels if "error" in labels[one]}
        unknown = {event for event in found if event not in expected and event[0] not in failures}
        self.world.require(not unknown, f"announced, but not in the list: {unknown}")
        self._check_messages({each["id"] for each in deliveries})
        ended = {(one, kind) for one in failures for kind in ("alert.firing", "alert.resolved")}
        return expected | ended <= found.keys()

    def _check_messages(self, known: set[str]) -> None:
        """Check that each received message belongs to a webhook delivery and has the same content on each arrival."""
        for message, bodies in self.world.receiver.received.items():
            if bodies[0]["type"].startswith("alert."):
                # A delivery that was stored after the log was read can already have arrived.
                self._arrived[message] = self._arrived.get(message, 0) + 1
                is_known = message in known or self._arrived[message] == 1
                self.world.require(is_known, f"the message {message} is not in the log")
                self.world.require(all(body == bodies[0] for body in bodies), f"message {message} has two contents")

    async def _list_deliveries(self) -> list[Any]:
        listed = await send_until_done(self.world, "ann@t", "GET", "oi-api/webhooks")
        webhook = next(each for each in listed.json["webhooks"] if "alert.firing" in each["eventTypes"])
        path = f"oi-api/webhooks/{webhook['id']}/deliveries?limit=1000"
        found: list[Any] = (await send_until_done(self.world, "ann@t", "GET", path)).json["deliveries"]
        return found

    async def _are_audited(self) -> bool:
        path = "oi-api/provenance/events/query?target=DomainEvents&scopeKey=alerts&limit=1000"
        reply = (await send_until_done(self.world, "ann@t", "GET", path)).json
        records = reply["records"] if isinstance(reply, dict) else reply
        acknowledged = {alert["id"] for alert in self._final.values() if alert["acknowledgedBy"] is not None}
        return acknowledged <= {record["EntityID"] for record in records}

    async def _check_pages(self) -> None:
        """Check that pages of one alert each contain both resolved alerts once."""
        path = f"{_ALERTS}?state=resolved&limit=2"
        found: list[str] = []
        cursor = ""
        while True:
            page = (await send_until_done(self.world, "viewer@t", "GET", path + cursor)).json
            found += [alert["id"] for alert in page["alerts"]]
            if "cursor" not in page:
                break
            cursor = f"&cursor={page['cursor']}"
        resolved = {alert["id"] for alert in self._final.values() if alert["state"] == "resolved"}
        self.world.require(len(found) == len(set(found)) and resolved <= set(found), f"pages contain {found}")

    def check_invariants(self, folder: Path) -> None:
        """Check the acknowledgements of alerts, their audit events, and the number of alerts."""
        events: dict[str, list[Any]] = defaultdict(list)
        for record in read_chains(self.world, folder):
            if record.get("ActionType") == "Alert.Acknowledged":
                state = record["AfterState"]
                events[record["EntityID"]].append(json.loads(state) if isinstance(state, str) else state)
        for alert_id, made in self._acknowledged.items():
            self.world.require(alert_id in self._final, f"alert {alert_id} was acknowledged, but is not listed")
            stored = _read_acknowledgement(self._final[alert_id])
            self.world.require(stored == made, f"alert {alert_id} was acknowledged as {made}, but {stored} is stored")
        for alert_id, alert in self._final.items():
            made, found = _read_acknowledgement(alert), [_read_acknowledgement(one) for one in events.pop(alert_id, [])]
            wanted = [made] if alert["acknowledgedBy"] is not None else []
            self.world.require(found == wanted, f"alert {alert_id} has {wanted}, but the audit events {found}")
        self.world.require(not events, f"acknowledgements of alerts that do not exist: {events}")
        for rule in ("hot", "lasting"):
            fired = [one for one in self._final.values() if one["rule"] == rule and one["firedAt"]]
            self.world.require(
                len(fired) <= self._rises, f"{rule} has {len(fired)} alerts, but the value rose {self._rises} times"
            )


def _build_rule(*, is_enabled: bool) -> dict[str, Any]:
    return {
        "name": "Often edited",
        "severity": "warning",
        "enabled": is_enabled,
        "surface": "hall",
        "kind": "threshold",
        "every": "PT15S",
        "query": "heat",
        "condition": {"column": "Value", "operator": "gt", "value": 50},
    }


def _read_acknowledgement(alert: Any) -> tuple[str, str, str]:
    return str(alert["acknowledgedBy"]), str(alert["comment"]), str(alert["acknowledgedAt"])


def _parse_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
