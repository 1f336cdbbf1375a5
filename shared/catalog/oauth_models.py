"""Models of the OAuth clients that a workspace document declares.

This module is separate from ``models``, because each subject with several models has its own module.
"""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from shared.catalog.fields import Model, Name
from shared.validation.redirect_uris import find_redirect_fault

CLIENT_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"


def _check_redirect_uri(uri: str) -> str:
    if fault := find_redirect_fault(uri):
        raise ValueError(fault)
    return uri


RedirectUri = Annotated[str, AfterValidator(_check_redirect_uri)]


class OAuthClient(Model):
    """Public OAuth client: a tool to which members may delegate rights; it has no secret."""

    id: Annotated[str, StringConstraints(pattern=CLIENT_ID_PATTERN)]
    name: Name
    redirect_uris: tuple[RedirectUri, ...] = Field(alias="redirectUris", min_length=1, max_length=20)
