"""Search for the people who created the API key from which the caller's token descends.

A token can be requested with an API key or with another token, so a chain of tokens leads back to one API key.
"""

from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass
from typing import Final

from shared.auth.older_keys import OlderKeyCreators
from shared.auth.ports import ApiKey, CredentialStore, Directory
from shared.auth.principals import Principal, build_revoked_credential_error, build_unauthenticated_error
from shared.errors import Kind, WorkspaceError

MAX_TOKENS: Final = 50
"""Maximum number of tokens between a token and its API key; each costs one read of the store."""

# Ids of members contain no control characters, so these texts differ from all ids.
_NOT_PERSONAL: Final = "\0not personal"
_UNKNOWN_CREATORS: Final = "\0key "


@dataclass(frozen=True, slots=True)
class Ancestors:
    """Credentials from which another credential descends.

    Attributes:
        token_ids: ids of the tokens, the direct parent first.
        api_key: API key from which the tokens descend; None if there is none.
    """

    token_ids: tuple[str, ...]
    api_key: ApiKey | None


class CredentialLineage:
    """Finder of the API key from which a caller's credential descends, and of the members who created this key.

    Args:
        store: storage of API keys and issued tokens.
        find_consent_credential_id: receives the id of an OAuth grant, and returns the id of the credential with which a
            member consented to the grant, or None for an unknown grant. The function itself is None if OAuth grants are
            not supported.
        older_keys: finds the creators of API keys that earlier versions of the service created without storing the
            creators; None to use only the stored creators.
    """

    def __init__(
        self,
        store: CredentialStore,
        find_consent_credential_id: Callable[[str], Awaitable[str | None]] | None = None,
        older_keys: OlderKeyCreators | None = None,
    ) -> None:
        self._store = store
        self._find_consent_credential = find_consent_credential_id
        self._older_keys = older_keys

    async def find_key_creator_ids(self, caller: Principal) -> frozenset[str] | None:
        """Return the members, other than the caller, who created the API key from which the caller's token descends.

        Return None if these members are unknown: an earlier version of the service created the key without storing
        them, and no audit event names them.

        Raises:
            WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if the creators are not stored, and the audit event
                that names them cannot be read; the errors of :meth:`find_ancestor_credentials`.
        """
        key = (await self.find_ancestor_credentials(caller)).api_key
        creators = () if key is None else await self._find_creator_ids(key)
        return None if creators is None else frozenset(creators) - {caller.member_id}

    async def describe_persons_who_may_know_credential(self, caller: Principal) -> list[str]:
        """Return texts that identify the persons who may know the caller's credential; empty if only the caller does.

        The texts do not depend on the audit log, so that they are the same before, during and after its outage. For a
        key whose creators are not stored, they therefore contain the id of the key.

        Raises:
            WorkspaceError: the errors of :meth:`find_ancestor_credentials`.
        """
        key = (await self.find_ancestor_credentials(caller)).api_key
        if key is not None and key.creators is None:
            return [f"{_UNKNOWN_CREATORS}{key.key_id}"]
        creators = [] if key is None else sorted(frozenset(key.creators or ()) - {caller.member_id})
        return creators if caller.personal else [_NOT_PERSONAL, *creators]

    async def find_author_ids_caller_cannot_approve(self, caller: Principal, directory: Directory) -> frozenset[str]:
        """Return the ids of the members in whose name the caller could have made changes.

        The caller must not approve changes of these members.

        The result contains the creators of the caller's credential. It also contains each service with an API key that
        the caller or one of these creators made, or with an API key of unknown creators. Otherwise, a person could make
        changes with the key of a service and then approve them.

        Args:
            caller: person who approves or rejects a change.
            directory: source of the current team. A removed member counts as a service, because the team no longer
                shows whether it was one. A member that was a service and is now a person counts as a service for
                the keys that were created while it was a service.

        Raises:
            WorkspaceError: FORBIDDEN ``MAKER_CHECKER_VIOLATION`` if the creators of the caller's API key are unknown;
                the errors of :meth:`find_key_creator_ids`.
        """
        creators = await self.find_key_creator_ids(caller)
        if creators is None:
            detail = (
                "The token descends from an API key whose creator is unknown; decide with a key that does not descend "
                "from it, or sign in with Entra ID."
            )
            raise WorkspaceError(Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", detail)
        persons = {each.casefold() for each in (caller.member_id, *creators)}
        team = await directory.get_team()
        services = set[str]()
        for key in (await self._store.load()).keys.values():
            if team.is_possibly_service_key(key) and await self._can_have_created_key(persons, key):
                services.add(key.principal)
        return creators | services

    async def require_credential_not_revoked(self, caller: Principal) -> None:
        """Check in the store that the caller's credential is not revoked.

        Raises:
            WorkspaceError: UNAUTHENTICATED if it is revoked; UNAVAILABLE if the store does not respond.
        """
        if await self._store.is_revoked(caller.stored_credential_id):
            raise build_revoked_credential_error()

    async def find_ancestor_credentials(self, caller: Principal) -> Ancestors:
        """Return the tokens and the API key from which the caller's credential descends.

        If the caller's credential is itself an API key, the result contains this key and no tokens.

        Raises:
            WorkspaceError: FORBIDDEN ``MAKER_CHECKER_VIOLATION`` if there are too many tokens between the caller's
                token and the API key; UNAUTHENTICATED if the record of one of these tokens is missing; UNAVAILABLE if
                the store does not respond.
        """
        credential_id, is_of_consent = caller.stored_credential_id, False
        token_ids: list[str] = []
        for _ in range(MAX_TOKENS):
            if not credential_id:
                return Ancestors(tuple(token_ids[1:]), None)
            # The record is also needed if the token has expired since the caller was authenticated.
            token = await self._store.find_token(credential_id)
            # Neither record is cached: another process may have just created the key.
            if token is None and (key := await self._store.find_key(credential_id)) is not None:
                return Ancestors(tuple(token_ids[1:]), key)
            token_ids.append(credential_id)
            if token is not None:
                credential_id, is_of_consent = token.parent, False
            elif (of_consent := await self._find_consent_credential_id(credential_id)) is not None:
                credential_id, is_of_consent = of_consent, True
            elif is_of_consent:
                # The grant outlives the record of this token. It names the API key if the token descends from one.
                return Ancestors(tuple(token_ids[1:]), None)
            else:
                raise build_unauthenticated_error("The record of the credential is missing; request a new token.")
        detail = "The token descends from its API key through too many tokens; request a token with the API key."
        raise WorkspaceError(Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", detail)

    async def _find_consent_credential_id(self, grant_id: str) -> str | None:
        return None if self._find_consent_credential is None else await self._find_consent_credential(grant_id)

    async def _find_creator_ids(self, key: ApiKey) -> tuple[str, ...] | None:
        return key.creators if self._older_keys is None else await self._older_keys.find_creator_ids(key)

    async def _can_have_created_key(self, casefolded_member_ids: Container[str], key: ApiKey) -> bool:
        """Return whether one of these members created a key, or the creators of the key are unknown."""
        creators = await self._find_creator_ids(key)
        return creators is None or any(creator.casefold() in casefolded_member_ids for creator in creators)
