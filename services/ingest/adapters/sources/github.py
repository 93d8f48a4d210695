"""A repository on GitHub or on a GitHub Enterprise Server: the files of a branch, by the hashes that git has for them. What has
changed since a commit is asked for by comparing the two."""

import contextlib
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx

from services.ingest.adapters.source_http import Sign, SourceHttp, body_of, secret_url, source_http
from services.ingest.adapters.source_patterns import matcher
from services.ingest.errors import BadSource, FileNotTaken, SourceAway, SourceTooLarge
from services.ingest.sources.models import FileReaders, SourceFile, SourceListing
from services.ingest.sources.ports import Opening, SourceField, SourceKind, SourceReader

_API = "https://api.github.com"
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_RAW = {**_HEADERS, "Accept": "application/vnd.github.raw+json"}
_COMPARED_MOST = 300
"""Files that a comparison tells of. One that tells of so many may have left some out."""
_PAGE, _COLLABORATOR_PAGES_MAX = 100, 20
"""More people than a document's access list holds are not asked for."""
_SHARES = (
    "GitHub names the collaborators of a private repository to tokens of people who may write to it. Give the source such a token, "
    "or make it with access=collection"
)
_FILE_MODES = ("100644", "100755")
"""Neither links nor other repositories."""


class RepositoryReader:
    """The files of one branch."""

    def __init__(self, http: SourceHttp, opening: Opening) -> None:
        settings = opening.settings
        owner, _, name = settings["repository"].partition("/")
        if not owner or not name or "/" in name:
            raise BadSource("repository is the owner and the name, as octocat/hello-world")
        self._http = http
        self._url = f"{settings.get('endpoint', _API).rstrip('/')}/repos/{quote(owner)}/{quote(name)}"
        self._branch = settings.get("branch", "")
        self._below = f"{folder}/" if (folder := settings.get("path", "").strip("/")) else ""
        self._matches = matcher(settings.get("only", ""))
        self._max_files = opening.surroundings.max_files
        self._tells_readers = tells_readers(settings)
        self._readers: FileReaders | None = None
        self.is_public = False

    async def look(self) -> None:
        """Raises SourceAway where the repository or the branch cannot be read."""
        found = await self._get("")
        self._branch = self._branch or str(found["default_branch"])
        if self._tells_readers:
            self._readers = await self._who(found)
        await self._head()

    async def describe_access(self, keys: Collection[str]) -> Mapping[str, FileReaders]:
        readers = await self._who(await self._get(""))
        return dict.fromkeys(keys, readers)

    async def _who(self, found: Mapping[str, Any]) -> FileReaders:
        """Everybody for a public repository, else its collaborators by their logins. Raises SourceAway."""
        self.is_public = found.get("private") is False
        if self.is_public:
            return FileReaders(is_public=True)
        logins = set[str]()
        for page in range(1, _COLLABORATOR_PAGES_MAX + 1):
            answer = await self._http.text(f"{self._url}/collaborators?per_page={_PAGE}&page={page}", _HEADERS)
            if answer.status_code != 200:
                raise _refused(answer, _SHARES)
            listed = _json(answer)
            logins |= {str(each["login"]).lower() for each in listed if each.get("permissions", {}).get("pull")}
            if len(listed) < _PAGE:
                break
        return FileReaders(frozenset(logins))

    async def list_changes(self, cursor: str) -> SourceListing:
        head, tree = await self._head()
        if cursor == head:
            return SourceListing((), is_complete=False, cursor=head)
        if cursor and (changes := await self._changes(cursor, head)) is not None:
            return changes
        files = await self._files(tree)
        return SourceListing(files, cursor=head)

    async def _head(self) -> tuple[str, str]:
        """The newest commit of the branch, and its tree."""
        found = await self._get(f"/commits/{quote(self._branch, safe='/')}")
        return str(found["sha"]), str(found["commit"]["tree"]["sha"])

    async def _changes(self, base: str, head: str) -> SourceListing | None:
        """None where a comparison cannot tell: the branch was written anew, too much has changed, or there may be links."""
        answer = await self._http.text(f"{self._url}/compare/{base}...{head}", _HEADERS)
        if answer.status_code != 200:
            return None
        found = answer.json()
        changed = found.get("files", ())
        if found.get("status") != "ahead" or len(changed) >= _COMPARED_MOST or any(map(_may_be_no_file, changed)):
            return None
        files, gone = [], []
        for each in changed:
            if each["status"] == "removed":
                gone.append(each["filename"])
            elif self._is_wanted(each["filename"]):
                files.append(self._file(each["filename"], each["sha"], 0))
            if each["status"] == "renamed":
                gone.append(each["previous_filename"])
        return SourceListing(files, is_complete=False, gone=gone, cursor=head)

    async def _files(self, tree: str) -> list[SourceFile]:
        found = await self._get(f"/git/trees/{tree}?recursive=1")
        if not found.get("truncated"):
            return self._checked(self._blobs(found, ""))
        files: list[SourceFile] = []  # too many for one answer: folder by folder
        folders, asked = [("", tree)], 0
        while folders:
            below, sha = folders.pop()
            if (asked := asked + 1) > self._max_files:  # also where a tree contains itself
                raise SourceTooLarge(f"the repository has more than {self._max_files} folders; name a path")
            listed = await self._get(f"/git/trees/{sha}")
            files = self._checked([*files, *self._blobs(listed, below)])
            inner = [(f"{below}{each['path']}/", each["sha"]) for each in listed["tree"] if each["type"] == "tree"]
            folders += [each for each in inner if each[0].startswith(self._below) or self._below.startswith(each[0])]
        return files

    def _blobs(self, listed: Any, below: str) -> list[SourceFile]:
        return [
            self._file(f"{below}{each['path']}", each["sha"], each.get("size", 0))
            for each in listed["tree"]
            if each["type"] == "blob" and each["mode"] in _FILE_MODES and self._is_wanted(f"{below}{each['path']}")
        ]

    def _checked(self, files: list[SourceFile]) -> list[SourceFile]:
        if len(files) > self._max_files:
            raise SourceTooLarge(
                f"the repository has more than {self._max_files} files; name a path or patterns, or have the operator raise "
                "GROUNDWORK_SOURCE_MAX_FILES"
            )
        return files

    def _is_wanted(self, path: str) -> bool:
        return path.startswith(self._below) and self._matches(path)

    def _file(self, path: str, sha: str, size_bytes: int) -> SourceFile:
        return SourceFile(path, sha, size_bytes, path.removeprefix(self._below), readers=self._readers)

    async def _get(self, path: str) -> Any:
        """Raises SourceAway."""
        answer = await self._http.text(f"{self._url}{path}", _HEADERS)
        if answer.status_code != 200:
            raise _refused(answer, "see that repository and branch are there, and that the token may read its contents")
        return _json(answer)

    async def fetch(self, file: SourceFile) -> AsyncIterator[bytes]:
        async with self._http.ask(f"{self._url}/git/blobs/{file.version}", _RAW) as answer:
            if answer.status_code != 200:
                raise FileNotTaken(
                    "FILE_UNREADABLE",
                    f"GitHub does not give it out ({answer.status_code}); it gives out files up to 100 MB",
                )
            async for piece in body_of(answer):
                yield piece


def _may_be_no_file(change: Mapping[str, Any]) -> bool:
    """Whether a change may be that of a link or a submodule: these have one line. A comparison does not tell modes."""
    patch = str(change.get("patch", ""))
    return change.get("additions", 0) == 1 and ("+Subproject commit " in patch or "\n\\ No newline" in patch)


def _json(answer: httpx.Response) -> Any:
    """Raises SourceAway."""
    try:
        return answer.json()
    except ValueError as error:
        raise SourceAway("the server does not answer as GitHub does; see that the endpoint is right") from error


def _refused(answer: httpx.Response, what: str) -> SourceAway:
    said = str(answer.status_code)
    with contextlib.suppress(ValueError, AttributeError):
        said = f"{said} {answer.json().get('message', '')}".strip()[:200]
    if answer.status_code == 401:
        return SourceAway(f"GitHub does not know the token ({said}); give the source another one")
    return SourceAway(f"the repository cannot be read ({said}); {what}")


def tells_readers(settings: Mapping[str, str]) -> bool:
    """Sources of releases that did not ask for collaborators have no such setting."""
    return settings.get("access") == "source"


def _signer(opening: Opening) -> Sign | None:
    token = opening.secrets.get("token", "")
    if not token:
        return None
    if not token.isascii() or not token.isprintable():
        raise BadSource("the token has characters that no token has; copy it again")
    secret_url(opening.settings.get("endpoint", _API), "endpoint")

    async def sign(_: httpx.Request) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {token}"}

    return sign


@asynccontextmanager
async def _open(opening: Opening) -> AsyncIterator[SourceReader]:
    async with source_http(opening.surroundings.guard, _signer(opening)) as http:
        reader = RepositoryReader(http, opening)
        await reader.look()
        yield reader


KIND = SourceKind(
    name="github",
    says="The files of a branch of a repository on GitHub.",
    fields=(
        SourceField("repository", "owner and name, as octocat/hello-world", is_required=True),
        SourceField("branch", "the repository's default branch where none is named"),
        SourceField("path", "only what is below this path, as docs"),
        SourceField(
            "only", "only files whose names match one of these patterns, with commas between them, as *.md,*.pdf"
        ),
        SourceField("endpoint", f"{_API} by default; of a GitHub Enterprise Server https://HOST/api/v3", is_url=True),
        SourceField(
            "access",
            "source: collaborators of a private repository, and everybody for a public one; or collection: all who may read that",
            choices=("source", "collection"),
        ),
        SourceField("token", "that may read the contents of the repository", is_secret=True),
    ),
    open=_open,
    default_name=lambda settings: settings["repository"].rpartition("/")[2],
    tells_readers=tells_readers,
    defaults={"access": "source"},
)
