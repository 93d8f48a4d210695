"""How each service is connected: whether a credential is good there, and where logins by OAuth are made and renewed."""

from collections.abc import Callable, Mapping
from datetime import datetime

from pydantic import SecretStr

from kit.network.egress import EgressGuard
from services.tools.adapters.http.drive import DriveClient
from services.tools.adapters.http.github import GithubClient
from services.tools.adapters.http.oauth import OAuthClient
from services.tools.adapters.mail import ImapMailbox
from services.tools.connections.desk import Door
from services.tools.connections.device_login import OAuthServer, ServiceLogins
from services.tools.connections.records import DRIVE, GITHUB, MAIL
from services.tools.settings import OAuthSettings

_READ_DRIVE = "https://www.googleapis.com/auth/drive.readonly"
_KNOWN: Mapping[str, OAuthServer] = {
    GITHUB: OAuthServer(
        "https://github.com/login/oauth/access_token",
        "https://github.com/login/device/code",
        scope="repo",
    ),
    DRIVE: OAuthServer(
        "https://oauth2.googleapis.com/token",
        "https://oauth2.googleapis.com/device/code",
        # The only scope for files that Google grants to devices: files that were opened with this client.
        scope="https://www.googleapis.com/auth/drive.file",
        account_scope=_READ_DRIVE,
    ),
    MAIL: OAuthServer(""),
}


def connection_doors(
    oauth: Mapping[str, OAuthSettings],
    guard: EgressGuard,
    now: Callable[[], datetime],
    *,
    github: GithubClient | None,
    drive: DriveClient | None,
    mail: ImapMailbox | None,
) -> Mapping[str, Door]:
    """Those of the services that can be connected here, by name."""

    def logins(service: str) -> ServiceLogins | None:
        server = _server(_KNOWN[service], oauth.get(service, OAuthSettings()))
        return ServiceLogins(server, OAuthClient(guard, server, now)) if server.token_url else None

    async def at_github(secret: SecretStr, user: str, *, is_token: bool) -> str:  # noqa: ARG001 - it is all the same there
        assert github is not None
        return await github.account(secret)

    async def at_drive(secret: SecretStr, user: str, *, is_token: bool) -> str:  # noqa: ARG001 - it is all the same there
        assert drive is not None
        return await drive.account(secret)

    doors = {}
    if github is not None:
        doors[GITHUB] = Door(github.address, at_github, logins(GITHUB))
    if drive is not None:
        doors[DRIVE] = Door(drive.address, at_drive, logins(DRIVE), takes_files=True, needs_login=True)
    if mail is not None:
        by_oauth = logins(MAIL)
        doors[MAIL] = Door(mail.address, mail.account, by_oauth, takes_files=by_oauth is not None, needs_user=True)
    return doors


def _server(known: OAuthServer, given: OAuthSettings) -> OAuthServer:
    return OAuthServer(
        given.token_url or known.token_url,
        given.device_url or known.device_url,
        given.client_id,
        given.client_secret,
        given.scope or known.scope,
        known.account_scope,
    )
