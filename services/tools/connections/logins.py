"""Credentials of connections: a word that is sent as it is, or a login by OAuth whose access tokens are renewed (RFC 6749)."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import SecretStr

from kit.errors import InvalidArgument
from services.tools.sources.logins import Login

_WORD = re.compile(r"[\x21-\x7e]{1,1000}")
_PASSWORD = re.compile(r"[^\x00-\x1f\x7f]{1,1000}")
_FILE_CHARACTERS_MAX = 8_000
_PRIVATE_KEY_CHARACTERS_MAX = 3_400
"""Of an RSA key of 4096 bits; Google's have 2048. One of 10,000 bits would hold the process for seconds."""
_LATER = ("renewing_until_s", "over_until_s", "over_because")
"""Fields that logins of earlier versions do not have."""
_LOGIN = "login"
"""The type of what is stored; the others are those of Google's files."""
_FILES = {
    "service_account": ("client_email", "private_key"),
    "authorized_user": ("client_id", "refresh_token"),
}
"""Files of credentials as Google makes them, with the fields that each has."""


def read_credential(secret: str, *, is_password: bool, takes_files: bool) -> Login | None:
    """The login that a file of credentials holds; None of a plain credential. Raises InvalidArgument."""
    if takes_files and secret.lstrip().startswith("{"):
        return _login_of_file(secret)
    if not (_PASSWORD if is_password else _WORD).fullmatch(secret):
        raise InvalidArgument("the credential must have 1 to 1000 visible ASCII characters, without spaces")
    return None


def _login_of_file(secret: str) -> Login:
    try:
        data: Any = json.loads(secret) if len(secret) <= _FILE_CHARACTERS_MAX else {}
        names = _FILES[data["type"]]
        is_whole = all(isinstance(data[name], str) and data[name] for name in names)
    except (ValueError, LookupError, TypeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise InvalidArgument(
            "a credential in JSON must be the file of a service account's key, with client_email and private_key, or one of "
            "the type authorized_user with client_id, client_secret and refresh_token"
        )
    if data["type"] == "service_account":
        if len(data["private_key"]) > _PRIVATE_KEY_CHARACTERS_MAX:
            raise InvalidArgument("the private key is longer than one of 4096 bits; take the file as Google made it")
        return login_of({name: data[name] for name in names}, {"access_token": ""})
    client = {name: data[name] for name in ("client_id", "client_secret") if isinstance(data.get(name), str)}
    return login_of(client, {"access_token": "", "refresh_token": data["refresh_token"]})


def login_of(client: Mapping[str, str], tokens: Mapping[str, Any], expires_at_s: float = 0.0) -> Login:
    """A login of a client; an empty one stands for the operator's."""
    return Login("", "", client, {}, {}, tokens, expires_at_s)


def encode_login(login: Login) -> SecretStr:
    """As it is sealed in the place of a plain credential."""
    known = asdict(login)
    kept = {name: known[name] for name in ("client", "tokens", "expires_at_s", *_LATER)}
    return SecretStr(json.dumps({"type": _LOGIN, **kept}))


def decode_login(secret: SecretStr) -> Login | None:
    """What `encode_login` has encoded; None of a plain credential."""
    value = secret.get_secret_value()
    if not value.startswith('{"type": "login"'):
        return None
    data = json.loads(value)
    later = {name: data[name] for name in _LATER if name in data}
    return Login("", "", data["client"], {}, {}, data["tokens"], data["expires_at_s"], **later)
