"""Google Drive for tests: one account and its files. Requests are held against Google's discovery document, and answers have the
fields that were asked for, as the API gives them."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jwt
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.doubles.http_double import HttpDouble, Recorded

API = json.loads((Path(__file__).parents[1] / "data" / "google_drive_v3.json").read_text())
FOLDER = "application/vnd.google-apps.folder"
DOCUMENT = "application/vnd.google-apps.document"
ROOT = "r00t"
_NAMES = re.compile(r"\w+|[(),]")


class Drive(HttpDouble):
    """Files are changed by `put`, `change` and `remove`."""

    def __init__(self) -> None:
        super().__init__()
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        self.refresh_token = "r3fresh"
        self.rotates = False
        """Whether a refresh token is exchanged for another one whenever it is used."""
        self.tokens: list[str] = []
        """Those that let in; clear them to take access away."""
        self.lets_in = True
        self.readers = [{"type": "user", "emailAddress": "Owner@example.com"}]
        self.files: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, bytes] = {}
        self.locked: set[str] = set()
        """Files that may not be downloaded."""
        self._log: list[str] = []
        self.put(ROOT, "Papers", parent="")

    @property
    def service_account(self) -> str:
        """A key of it as JSON."""
        pem = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        account = {"client_email": "bot@example.com", "private_key": pem.decode(), "token_uri": f"{self.url}/token"}
        return json.dumps(account)

    def put(self, file_id: str, name: str, content: bytes | None = None, *, parent: str = ROOT, kind: str = "") -> None:
        """A file, or a folder where it has no content."""
        found = {"id": file_id, "name": name, "mimeType": kind or ("text/plain" if content is not None else FOLDER)}
        found |= {"parents": [parent] if parent else [], "permissions": self.readers, "trashed": False}
        self.files[file_id] = found
        if content is not None:
            self.write(file_id, content)
        self._log.append(file_id)

    def write(self, file_id: str, content: bytes) -> None:
        self.contents[file_id] = content
        at = f"2026-03-02T10:00:{len(self._log) % 60:02d}.000Z"
        mark = (
            {"modifiedTime": at}
            if self.files[file_id]["mimeType"] == DOCUMENT
            else {"md5Checksum": hashlib.md5(content, usedforsecurity=False).hexdigest()}
        )
        self.change(file_id, size=str(len(content)), **mark)

    def change(self, file_id: str, **fields: Any) -> None:
        self.files[file_id] |= fields
        self._log.append(file_id)

    def remove(self, file_id: str) -> None:
        del self.files[file_id]
        self._log.append(file_id)

    async def respond(self, request: Recorded) -> web.Response:
        if request.path == "/token":
            return self._token(request)
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return self._error(401, "Invalid Credentials", "authError")
        path = request.path.removeprefix("/drive/v3/")
        for method, said in API["methods"].items():
            if match := re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", said["path"]), path):
                self._check(said, request, match.groupdict())
                return self._answer_to(method, request, unquote(match.groupdict().get("fileId", "")))
        return self._error(404, f"no such path {path}", "notFound")

    @staticmethod
    def _check(said: Any, request: Recorded, in_path: dict[str, str]) -> None:
        """The request is one that the API knows."""
        known = {*said["parameters"], *API["globals"]}
        assert set(request.query) <= known, request.query
        for name, about in said["parameters"].items():
            assert not about.get("required") or name in request.query or name in in_path, name
            if "maximum" in about and name in request.query:
                assert 1 <= int(request.query[name]) <= int(about["maximum"])

    def _answer_to(self, method: str, request: Recorded, file_id: str) -> web.Response:
        query = request.query
        file_id = ROOT if file_id == "root" else file_id
        if file_id and file_id not in self.files:
            return self._error(404, f"File not found: {file_id}.", "notFound")
        match method:
            case "drive.files.get" if query.get("alt") == "media":
                return self._content(file_id)
            case "drive.files.export":
                assert self.files[file_id]["mimeType"] == DOCUMENT
                return self._content(file_id)
            case "drive.files.get":
                found = self.files[file_id]
            case "drive.files.list":
                assert query["includeItemsFromAllDrives"] == "true"
                there = self._listed(query["q"])
                start = int(query.get("pageToken", "0"))
                found = {"files": there[start : start + 2], "incompleteSearch": False}
                found |= {"nextPageToken": str(start + 2)} if start + 2 < len(there) else {}
            case "drive.about.get":
                found = {"user": {"emailAddress": "Owner@example.com"}}
            case "drive.changes.getStartPageToken":
                return self.answer(200, {"kind": "drive#startPageToken", "startPageToken": str(len(self._log))})
            case "drive.changes.list":
                changed = list(dict.fromkeys(self._log[int(query["pageToken"]) :]))
                changes = [self._change(each) for each in changed]
                found = {"changes": changes, "newStartPageToken": str(len(self._log))}
            case _:
                return self._error(403, "The user does not have sufficient permissions.", "insufficientFilePermissions")
        return self.answer(200, _only(found, API["methods"][method]["response"], query["fields"]))

    def _listed(self, q: str) -> list[dict[str, Any]]:
        """Files in any of the named folders that hold the words, without those in the bin."""
        assert "trashed = false" in q
        parents = set(re.findall(r"'([^']+)' in parents", q))
        words = [each.replace("\\'", "'").lower() for each in re.findall(r"fullText contains '((?:[^'\\]|\\.)+)'", q)]
        return [
            each
            for file_id, each in self.files.items()
            if (not parents or parents & set(each["parents"]))
            and all(word in f"{each['name']} {self.contents.get(file_id, b'').decode()}".lower() for word in words)
            and not each["trashed"]
        ]

    def _change(self, file_id: str) -> dict[str, Any]:
        found = self.files.get(file_id)
        return {"fileId": file_id, "removed": found is None, **({"file": found} if found else {})}

    def _content(self, file_id: str) -> web.Response:
        if file_id in self.locked:
            return self._error(403, "This file cannot be downloaded by the user.", "cannotDownloadFile")
        return web.Response(body=self.contents[file_id])

    def _token(self, request: Recorded) -> web.Response:
        form = request.body if isinstance(request.body, dict) else {}
        if form.get("grant_type") == "refresh_token":
            is_right = form["refresh_token"] == self.refresh_token and form["client_secret"] == "cl1ent"
        else:
            claims = jwt.decode(
                form["assertion"], self._key.public_key(), algorithms=["RS256"], audience=f"{self.url}/token"
            )
            is_right = claims["iss"] == "bot@example.com" and claims["scope"].endswith("/drive.readonly")
        if not is_right or not self.lets_in:
            return self.answer(400, {"error": "invalid_grant", "error_description": "Token has been revoked."})
        self.tokens.append(f"t{len(self.tokens)}")
        given = {"access_token": self.tokens[-1], "expires_in": 3599, "token_type": "Bearer"}
        if self.rotates and "refresh_token" in form:
            self.refresh_token = given["refresh_token"] = f"r3fresh{len(self.tokens)}"
        return self.answer(200, given)

    def _error(self, status: int, message: str, reason: str) -> web.Response:
        errors = [{"domain": "global", "reason": reason, "message": message}]
        return self.answer(status, {"error": {"code": status, "message": message, "errors": errors}})


def _only(found: Any, schema: str, fields: str) -> Any:
    """A partial answer. A field that the schema does not have is an error, as it is at Google's."""
    chosen, rest = _chosen(_NAMES.findall(fields))
    assert not rest
    return _cut(found, schema, chosen)


def _chosen(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    found: dict[str, Any] = {}
    name = ""
    while words:
        word, *words = words
        if word == "(":
            found[name], words = _chosen(words)
        elif word == ")":
            break
        elif word != ",":
            name, found[word] = word, {}
    return found, words


def _cut(found: Any, schema: str, chosen: dict[str, Any]) -> Any:
    if isinstance(found, list):
        return [_cut(each, schema, chosen) for each in found]
    unknown = set(chosen) - set(API["schemas"][schema])
    assert not unknown, f"{schema} has no {unknown}"
    return {
        name: _cut(found[name], API["schemas"][schema][name], inner) if inner else found[name]
        for name, inner in chosen.items()
        if name in found
    }
