"""Tests of declared OAuth clients in workspace documents."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from shared.auth.rights import AccessRight
from shared.catalog.change_rules import KIND_RIGHTS
from shared.catalog.diff import ItemChange
from shared.catalog.document import load_document
from shared.catalog.items import ItemKind
from shared.catalog.models import OAuthClient
from shared.catalog.problems import DocumentError
from shared.catalog.service import build_audit_event
from shared.provenance.ports import Target

CLIENT = {"id": "grafana", "name": "Grafana", "redirectUris": ["https://grafana.example/login"]}


def test_an_oauth_client_is_declared() -> None:
    """A declared OAuth client has an id, a name and redirect URIs."""
    client = OAuthClient.model_validate(CLIENT)
    assert client.redirect_uris == ("https://grafana.example/login",)


@pytest.mark.parametrize(
    "members",
    [
        {"id": "https://app.example/client.json"},
        {"id": ""},
        {"id": "a b"},
        {"redirectUris": []},
        {"redirectUris": ["http://grafana.example/login"]},
        {"redirectUris": ["https://grafana.example/login"] * 21},
        {"secret": "x"},
    ],
)
def test_invalid_oauth_clients_are_rejected(members: dict[str, Any]) -> None:
    """An OAuth client is rejected if its id is a URL, a redirect URI is invalid, or it has a secret."""
    with pytest.raises(ValidationError):
        OAuthClient.model_validate(CLIENT | members)


def test_changes_of_clients_need_the_right_to_manage_the_team() -> None:
    """Changing OAuth clients requires the right to manage the team, and is audited in the AccessControl chain."""
    assert KIND_RIGHTS[ItemKind.OAUTH_CLIENT] is AccessRight.TEAM_MANAGE
    event = build_audit_event(ItemChange(ItemKind.OAUTH_CLIENT, "grafana", None, CLIENT), "admin@t", "plant-t", "e1")
    assert (event.target, event.event["ActionType"]) == (Target.ACCESS_CONTROL, "Catalog.OauthClient.Created")


def test_repeated_ids_of_oauth_clients_are_problems() -> None:
    """If two OAuth clients have the same id, a problem is reported at the second client."""
    document = {"workspace": {"id": "p", "name": "P"}, "oauthClients": [CLIENT, CLIENT]}
    with pytest.raises(DocumentError) as caught:
        load_document(json.dumps(document), "document.json")
    assert "oauthClients[1].id" in str(caught.value)
