"""A bucket of Amazon S3 or of any server that speaks its protocol. Requests are signed by AWS' own library and sent by our client,
since no library of S3 lets the address that it connects to be judged."""

import asyncio
import datetime
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote, unquote_plus, urlencode

import httpx
from awscrt.auth import AwsCredentialsProvider, AwsSignedBodyHeaderType, AwsSigningConfig, aws_sign_request
from awscrt.http import HttpHeaders, HttpRequest
from defusedxml import ElementTree

from kit.network.egress import EgressGuard, place_of
from services.ingest.adapters.source_http import Sign, SourceHttp, body_of, source_http
from services.ingest.adapters.source_patterns import matcher
from services.ingest.errors import BadSource, FileNotTaken, SourceAway, SourceTooLarge
from services.ingest.sources.models import SourceFile, SourceListing
from services.ingest.sources.ports import Opening, SourceField, SourceKind, SourceReader

_REGION = "us-east-1"
_EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_SAID_MAX = 200


@dataclass(frozen=True)
class _Page:
    """A part of a listing."""

    files: list[SourceFile]
    token: str
    """Of the next part; empty at the end."""


class BucketReader:
    """The objects below a prefix."""

    def __init__(self, http: SourceHttp, opening: Opening) -> None:
        settings = opening.settings
        region = settings.get("region", _REGION)
        endpoint = settings.get("endpoint", f"https://s3.{region}.amazonaws.com").rstrip("/")
        self._http = http
        self._url = f"{endpoint}/{quote(settings['bucket'])}"
        self._prefix = settings.get("prefix", "")
        self._is_wanted = matcher(settings.get("only", ""))
        self._max_files = opening.surroundings.max_files

    async def look(self) -> None:
        """Raises BadSource and SourceAway where the bucket cannot be listed."""
        await self._page("", 1)

    async def list_changes(self, cursor: str) -> SourceListing:  # noqa: ARG002 - S3 tells no changes
        found: list[SourceFile] = []
        tokens: set[str] = set()
        page = await self._page("")
        while True:
            found += page.files
            if len(found) > self._max_files:
                raise SourceTooLarge(
                    f"the bucket has more than {self._max_files} files; take prefixes of it one by one, or have the operator raise "
                    "GROUNDWORK_SOURCE_MAX_FILES"
                )
            if not page.token:
                return SourceListing(found)
            if page.token in tokens:
                raise SourceAway(
                    "the server lists the same part of the bucket again; see that the endpoint is one of S3"
                )
            tokens.add(page.token)
            page = await self._page(page.token)

    async def _page(self, token: str, size: int = 1000) -> _Page:
        query = {"list-type": "2", "encoding-type": "url", "max-keys": str(size), "prefix": self._prefix}
        if token:
            query["continuation-token"] = token
        # Sorted and with %20, as it is signed.
        answer = await self._http.text(f"{self._url}?{urlencode(sorted(query.items()), quote_via=quote)}")
        if answer.status_code != 200:
            raise _refused(answer)
        try:
            return self._read(answer.content)
        except (ElementTree.ParseError, ValueError) as error:
            raise SourceAway("the server does not answer as S3 does; see that the endpoint is one of S3") from error

    def _read(self, body: bytes) -> _Page:
        tree = ElementTree.fromstring(body)
        if not tree.tag.endswith("ListBucketResult"):
            raise ValueError(tree.tag)
        token = tree.findtext("{*}NextContinuationToken", "")
        if not token and tree.findtext("{*}IsTruncated", "").strip().lower() == "true":
            raise ValueError("there is more, and no token for it")
        is_quoted = tree.findtext("{*}EncodingType", "").strip() == "url"
        files = []
        for entry in tree.iterfind("{*}Contents"):
            key = entry.findtext("{*}Key", "")
            key = unquote_plus(key) if is_quoted else key
            name = key.removeprefix(self._prefix).lstrip("/") or key.rpartition("/")[2]
            if key and not key.endswith("/") and self._is_wanted(key):
                size_bytes = int(entry.findtext("{*}Size", "0"))
                files.append(SourceFile(key, entry.findtext("{*}ETag", "").strip('"'), size_bytes, name))
        return _Page(files, token)

    async def fetch(self, file: SourceFile) -> AsyncIterator[bytes]:
        url = f"{self._url}/{quote(file.key, safe='/-_.~')}"
        async with self._http.ask(url, {"If-Match": f'"{file.version}"'} if file.version else {}) as answer:
            if answer.status_code == 412:
                raise FileNotTaken("FILE_CHANGING", "it changed since it was listed; the next sync reads it again")
            if answer.status_code == 404:
                raise FileNotTaken("NO_FILE", "it is gone since it was listed")
            if answer.status_code != 200:
                what = "let the key read it, or fetch it out of the archive"
                raise FileNotTaken("FILE_UNREADABLE", f"the server does not give it out ({answer.status_code}); {what}")
            async for piece in body_of(answer):
                yield piece


def _refused(answer: httpx.Response) -> BadSource | SourceAway:
    try:
        tree = ElementTree.fromstring(answer.content)
        said = ": ".join(filter(None, (tree.findtext("{*}Code") or tree.findtext("Code"), tree.findtext("Message"))))
    except ElementTree.ParseError:
        said = ""
    said = f"{answer.status_code} {said}".strip()[:_SAID_MAX]
    region = answer.headers.get("x-amz-bucket-region", "")
    if answer.status_code in (301, 307, 400) and region:
        return BadSource(f"the bucket is in the region {region[:40]}; say region={region[:40]}")
    if answer.status_code in (401, 403):
        return SourceAway(f"the bucket lets the source not in ({said}); give it keys that may list and read the bucket")
    if answer.status_code == 404:
        return SourceAway(f"there is no such bucket ({said}); see that it is there, and that the endpoint is right")
    return SourceAway(f"the bucket cannot be listed ({said}); see that the endpoint is one of S3")


def _signer(opening: Opening) -> Sign | None:
    """None: nothing is signed, as buckets for everybody want it. Raises BadSource."""
    access_key, secret_key = opening.secrets.get("access_key", ""), opening.secrets.get("secret_key", "")
    if not access_key and not secret_key:
        return None
    if not access_key or not secret_key:
        raise BadSource(
            "access_key and secret_key belong together; give both, or none for a bucket that is open to all"
        )
    provider = AwsCredentialsProvider.new_static(access_key, secret_key, opening.secrets.get("session_token") or None)
    region = opening.settings.get("region", _REGION)

    async def sign(request: httpx.Request) -> Mapping[str, str]:
        config = AwsSigningConfig(
            credentials_provider=provider,
            region=region,
            service="s3",
            date=datetime.datetime.now(datetime.UTC),
            use_double_uri_encode=False,
            should_normalize_uri_path=False,
            signed_body_value=_EMPTY_SHA256,
            signed_body_header_type=AwsSignedBodyHeaderType.X_AMZ_CONTENT_SHA_256,
        )
        unsigned = HttpRequest("GET", request.url.raw_path.decode(), HttpHeaders([("Host", request.headers["host"])]))
        signed = await asyncio.wrap_future(aws_sign_request(unsigned, config))
        return {name: value for name, value in signed.headers if name.lower() != "host"}

    return sign


async def _guard(opening: Opening) -> EgressGuard:
    """Files travel in clear text within networks of the operator alone, at each connection. Raises BadSource, and as the guard."""
    guard = opening.surroundings.guard
    place = place_of(opening.settings.get("endpoint", "https://s3.amazonaws.com"))
    if place.scheme == "https":
        return guard
    if not await guard.is_listed(place.host, place.port):
        raise BadSource(
            "endpoint begins with https://; http:// is for networks that the operator lists in GROUNDWORK_EGRESS_ALLOWED_NETWORKS"
        )
    return guard.only_listed()  # the name may lead somewhere else later


@asynccontextmanager
async def _open(opening: Opening) -> AsyncIterator[SourceReader]:
    async with source_http(await _guard(opening), _signer(opening)) as http:
        reader = BucketReader(http, opening)
        await reader.look()
        yield reader


KIND = SourceKind(
    name="s3",
    says="A bucket of Amazon S3, or of another server that speaks its protocol.",
    fields=(
        SourceField("bucket", "its name", is_required=True),
        SourceField("endpoint", "address of the server, as https://s3.example.com; Amazon's by default", is_url=True),
        SourceField("region", f"where it is; {_REGION} by default"),
        SourceField("prefix", "only what begins with it, as reports/2024/"),
        SourceField(
            "only", "only files whose names match one of these patterns, with commas between them, as *.md,*.pdf"
        ),
        SourceField("access_key", "id of the key that may list and read the bucket", is_secret=True),
        SourceField("secret_key", "the key itself", is_secret=True),
        SourceField("session_token", "belongs to temporary keys; other keys have none", is_secret=True),
    ),
    open=_open,
    default_name=lambda settings: settings["bucket"],
)
