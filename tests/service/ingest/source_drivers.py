"""What a person does at a source of each kind, over the same doubles as the kinds' own tests."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from services.ingest.adapters.sources import bucket, drive, feed, folder, github, imap, web_site
from services.ingest.sources.ports import SourceKind
from tests.doubles.drive import Drive
from tests.doubles.github import REPOSITORY, GitHub
from tests.doubles.imap import USER, MailHost
from tests.doubles.s3 import BUCKET, Bucket
from tests.doubles.s3 import bucket as running_bucket
from tests.doubles.web_site import WebSite


class Driver(ABC):
    """Files have plain names, and one line of text each."""

    kind: SourceKind
    settings: Mapping[str, str]
    secrets: Mapping[str, str]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secrets = {}

    @abstractmethod
    def running(self) -> AbstractAsyncContextManager[None]: ...

    @abstractmethod
    async def write(self, name: str, text: str) -> None:
        """Makes or edits a file."""

    async def rename(self, name: str, new: str) -> None:
        raise NotImplementedError

    async def delete(self, name: str) -> None:
        raise NotImplementedError

    @abstractmethod
    async def lock_out(self) -> None:
        """Takes away what the source gets in by."""

    async def name_readers(self, *readers: str) -> None:
        """All who may read every file."""
        raise NotImplementedError


class FolderDriver(Driver):
    kind = folder.KIND

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.settings = {"folder": "papers"}
        yield

    async def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    async def rename(self, name: str, new: str) -> None:
        (self.folder / name).rename(self.folder / new)

    async def delete(self, name: str) -> None:
        (self.folder / name).unlink()

    async def lock_out(self) -> None:
        self.folder.rename(self.folder.with_name("elsewhere"))


class BucketDriver(Driver):
    kind = bucket.KIND

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with running_bucket() as self._bucket:
            self.settings = {"bucket": BUCKET, "endpoint": self._bucket.url}
            self.secrets = self._bucket.secrets
            yield

    _bucket: Bucket

    async def write(self, name: str, text: str) -> None:
        await self._bucket.write(name, text)

    async def rename(self, name: str, new: str) -> None:
        await self._bucket.rename(name, new)

    async def delete(self, name: str) -> None:
        await self._bucket.delete(name)

    async def lock_out(self) -> None:
        await self._bucket.revoke()


class WebDriver(Driver):
    kind = web_site.KIND

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._site, self._pages = WebSite(), dict[str, str]()
        async with self._site.running():
            self.settings = {"url": f"{self._site.url}/", "delay": "0"}
            yield

    def _publish(self) -> None:
        self._site.resources.clear()
        self._site.page("/", "All pages.", *self._pages)
        for name, text in self._pages.items():
            self._site.write(f"/{name}", f"<html><body><main><p>{text}</p></main></body></html>")

    async def write(self, name: str, text: str) -> None:
        self._pages[name] = text
        self._publish()

    async def rename(self, name: str, new: str) -> None:
        self._pages[new] = self._pages.pop(name)
        self._publish()

    async def delete(self, name: str) -> None:
        del self._pages[name]
        self._publish()

    async def lock_out(self) -> None:
        self._site.resources.clear()


class GitHubDriver(Driver):
    kind = github.KIND

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._github = GitHub()
        self._github.collaborators = ["ann", "bob"]
        async with self._github.running():
            self.settings = {"repository": REPOSITORY, "endpoint": self._github.url, "access": "source"}
            self.secrets = {"token": self._github.token}
            yield

    async def write(self, name: str, text: str) -> None:
        self._github.files[name] = text
        self._github.commit()

    async def rename(self, name: str, new: str) -> None:
        self._github.files[new] = self._github.files.pop(name)
        self._github.commit()

    async def delete(self, name: str) -> None:
        del self._github.files[name]
        self._github.commit()

    async def lock_out(self) -> None:
        self._github.token = "an0ther"

    async def name_readers(self, *readers: str) -> None:
        self._github.collaborators = list(readers)


class MailDriver(Driver):
    """A file is a message. Its name is its subject."""

    kind = imap.KIND

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._places = dict[str, tuple[str, int]]()
        with MailHost(self.folder).running() as self._host:
            await self._host.do(lambda client: client.create_folder("Archive"))
            where = {"server": "127.0.0.1", "port": str(self._host.port), "folders": "*"}
            self.settings = {**where, "user": USER, "access": "source"}
            self.secrets = {"password": self._host.password}
            yield

    @property
    def authorities_file(self) -> Path:
        return self._host.authorities_file

    async def write(self, name: str, text: str) -> None:
        if name in self._places:
            await self.delete(name)
        self._places[name] = ("INBOX", await self._host.put("INBOX", name, text))

    async def rename(self, name: str, new: str) -> None:
        """To another folder: subjects stay."""
        place = self._places.pop(name)
        await self._host.move(*place, "Archive")
        uids = await self._host.do(lambda client: (client.select_folder("Archive"), client.search())[1])
        self._places[new] = ("Archive", max(uids))

    async def delete(self, name: str) -> None:
        await self._host.delete(*self._places.pop(name))

    async def lock_out(self) -> None:
        await self._host.change_password("an0ther")


class DriveDriver(Driver):
    kind = drive.KIND

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._drive = Drive()
        await self.name_readers("ann", "bob")
        async with self._drive.running():
            self.settings = {"folder": "r00t", "endpoint": self._drive.url}
            self.secrets = {"service_account": self._drive.service_account}
            yield

    def _id(self, name: str) -> str:
        return next(each for each, file in self._drive.files.items() if file["name"] == name)

    async def write(self, name: str, text: str) -> None:
        if any(file["name"] == name for file in self._drive.files.values()):
            self._drive.write(self._id(name), text.encode())
        else:
            self._drive.put(hashlib.sha256(name.encode()).hexdigest()[:8], name, text.encode())

    async def rename(self, name: str, new: str) -> None:
        self._drive.change(self._id(name), name=new)

    async def delete(self, name: str) -> None:
        self._drive.remove(self._id(name))

    async def lock_out(self) -> None:
        self._drive.lets_in = False
        self._drive.tokens.clear()

    async def name_readers(self, *readers: str) -> None:
        self._drive.readers = [{"type": "user", "emailAddress": each} for each in readers]
        for file_id in self._drive.files:
            self._drive.change(file_id, permissions=self._drive.readers)


class FeedDriver(Driver):
    """A file is an entry, and its name the entry's id."""

    kind = feed.KIND

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._site, self._entries = WebSite(), dict[str, str]()
        async with self._site.running():
            self.settings = {"url": f"{self._site.url}/news.xml"}
            yield

    async def write(self, name: str, text: str) -> None:
        self._entries[name] = text
        items = "".join(
            f"<item><guid>http://x.test/{key}</guid><title>News</title><description>{each}</description></item>"
            for key, each in self._entries.items()
        )
        channel = f"<channel><title>News</title><link>http://x.test</link>{items}</channel>"
        self._site.write("/news.xml", f'<?xml version="1.0"?><rss version="2.0">{channel}</rss>', "application/xml")

    async def lock_out(self) -> None:
        self._site.resources.clear()


DRIVERS = (FolderDriver, BucketDriver, WebDriver, GitHubDriver, MailDriver, DriveDriver, FeedDriver)
