"""GitHub as its published REST API describes it (version 2022-11-28): one repository with the history of a branch."""

import hashlib
from typing import Any

from aiohttp import web

from tests.doubles.http_double import HttpDouble, Recorded

REPOSITORY = "octocat/papers"


class GitHub(HttpDouble):
    """Files are changed in `files` and come into the branch by `commit`."""

    def __init__(self) -> None:
        super().__init__()
        self.token = "t0ken"
        self.files: dict[str, str] = {}
        self.collaborators: list[str] | None = None
        """Logins of those who may read a private repository; None for a public one."""
        self.truncates = False
        """Whether a tree is too large for one answer."""
        self._commits: dict[str, dict[str, str]] = {}
        self._blobs: dict[str, bytes] = {}
        self._trees: dict[str, Any] = {}

    def commit(self) -> None:
        blobs = {path: self._blob(text) for path, text in self.files.items()}
        self._commits[_sha(f"commit {len(self._commits)} {sorted(blobs.items())}")] = blobs

    def forget_history(self) -> None:
        """As a forced push does."""
        self.commit()
        self._commits = dict([list(self._commits.items())[-1]])

    async def respond(self, request: Recorded) -> web.Response:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return self.answer(401, {"message": "Bad credentials"})
        if not request.path.startswith(f"/repos/{REPOSITORY}"):
            return self.answer(404, {"message": "Not Found"})
        match request.path.removeprefix(f"/repos/{REPOSITORY}").strip("/").split("/"):
            case [""]:
                is_private = self.collaborators is not None
                answer = self.answer(200, {"full_name": REPOSITORY, "default_branch": "main", "private": is_private})
            case ["collaborators"] if self.collaborators is not None:
                size, start = int(request.query["per_page"]), int(request.query["page"]) - 1
                page = self.collaborators[start * size :][:size]
                answer = self.answer(200, [{"login": each, "permissions": {"pull": True}} for each in page])
            case ["commits", "main"]:
                head = list(self._commits)[-1]
                answer = self.answer(200, {"sha": head, "commit": {"tree": {"sha": self._tree(self._commits[head])}}})
            case ["compare", both]:
                answer = self._compare(*both.split("..."))
            case ["git", "blobs", sha]:
                assert request.headers["accept"] == "application/vnd.github.raw+json"
                answer = web.Response(body=self._blobs[sha])
            case ["git", "trees", sha]:
                answer = self._listed(sha, is_recursive="recursive" in request.query)
            case _:
                answer = self.answer(404, {"message": "Not Found"})
        return answer

    def _listed(self, sha: str, *, is_recursive: bool) -> web.Response:
        entries: list[dict[str, Any]] = []
        for name, value in self._trees[sha].items():
            if isinstance(value, str):
                entries.append(
                    {"path": name, "mode": "100644", "type": "blob", "sha": value, "size": len(self._blobs[value])}
                )
            else:
                inner = self._tree_of(value)
                entries.append({"path": name, "mode": "040000", "type": "tree", "sha": inner})
                if is_recursive:
                    found = self._entries_below(value, f"{name}/")
                    entries += found
        if is_recursive and self.truncates:
            return self.answer(200, {"sha": sha, "tree": entries[:1], "truncated": True})
        return self.answer(200, {"sha": sha, "tree": entries, "truncated": False})

    def _entries_below(self, folder: dict[str, Any], below: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for name, value in folder.items():
            if isinstance(value, str):
                size = len(self._blobs[value])
                found.append({"path": f"{below}{name}", "mode": "100644", "type": "blob", "sha": value, "size": size})
            else:
                found.append({"path": f"{below}{name}", "mode": "040000", "type": "tree", "sha": self._tree_of(value)})
                found += self._entries_below(value, f"{below}{name}/")
        return found

    def _compare(self, base: str, head: str) -> web.Response:
        if base not in self._commits or head not in self._commits:
            return self.answer(404, {"message": "Not Found"})
        old, new = self._commits[base], self._commits[head]
        removed = {path: sha for path, sha in old.items() if path not in new}
        changed: list[dict[str, Any]] = []
        for path, sha in new.items():
            if path in old:
                changed += [{"filename": path, "status": "modified", "sha": sha}] if old[path] != sha else []
                continue
            previous = next((each for each, blob in removed.items() if blob == sha), None)
            if previous is None:
                changed.append({"filename": path, "status": "added", "sha": sha})
            else:
                del removed[previous]
                changed.append({"filename": path, "status": "renamed", "sha": sha, "previous_filename": previous})
        changed += [{"filename": path, "status": "removed", "sha": sha} for path, sha in removed.items()]
        return self.answer(200, {"status": "ahead", "files": changed})

    def _blob(self, text: str) -> str:
        data = text.encode()
        sha = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        self._blobs[sha] = data
        return sha

    def _tree(self, blobs: dict[str, str]) -> str:
        root: dict[str, Any] = {}
        for path, sha in blobs.items():
            *folders, name = path.split("/")
            folder = root
            for each in folders:
                folder = folder.setdefault(each, {})
            folder[name] = sha
        return self._tree_of(root)

    def _tree_of(self, folder: dict[str, Any]) -> str:
        sha = _sha(f"tree {folder}")
        self._trees[sha] = folder
        return sha


def _sha(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
