"""The mail server of a source: a connection of kit.network.imap, whose failures say what becomes of the sync."""

from collections.abc import Callable
from typing import TypeVar

from kit.network import imap
from kit.network.egress import EgressGuard
from kit.network.imap import MailClient, MailServer
from services.ingest.errors import SourceAway, SourceBusy

_Answer = TypeVar("_Answer")


class ConnectionLost(SourceAway):
    """The connection broke in the middle of a call."""


class AnswerTooLong(ConnectionLost):
    """The server says more than it may, so that the connection was broken."""


class SourceMail:
    """Connects when it is needed, and again after it was lost."""

    def __init__(self, guard: EgressGuard, server: MailServer) -> None:
        self._connection = imap.ImapConnection(guard, server)
        self._has_token = server.token is not None

    async def call(self, ask: Callable[[MailClient], _Answer], most: int = imap.ANSWER_BYTES_MAX) -> _Answer:
        """As ImapConnection.call. Raises ImapRefused, ConnectionLost, AnswerTooLong, SourceAway and SourceBusy."""
        try:
            return await self._connection.call(ask, most)
        except imap.AnswerTooLong as error:
            raise AnswerTooLong(error.message) from error
        except imap.ConnectionLost as error:
            raise ConnectionLost(_what_to_do(error)) from error
        except imap.LoginRefused as error:
            what = "another password, where the provider has them one that is made for programs"
            if self._has_token:
                what = "a refresh_token of this user that may read mail"
            raise SourceAway(f"{error.message}; give the source {what}") from error
        except imap.ImapAway as error:
            raise SourceAway(_what_to_do(error)) from error
        except imap.ImapBusy as error:
            raise SourceBusy(
                f"{error.message}; the next sync comes after that", retry_after_s=error.retry_after_s
            ) from error

    async def close(self) -> None:
        """Takes leave, if there is still somebody to take it from."""
        await self._connection.close()


def _what_to_do(error: imap.ImapAway) -> str:
    return f"{error.message}; {error.advice}, the next sync tries again" if error.advice else error.message
