"""What web sites allow programs to read, by their robots.txt (RFC 9309)."""

import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from cachetools import TTLCache
from protego import Protego

from services.tools.web.pages import WebAnswer, WebFailed

_KEEP_S = 3_600.0
"""RFC 9309, 2.4, allows a day."""
_SITES_MAX = 512
_BYTES_MAX = 500 * 1024
"""RFC 9309, 2.5: at least so much is read; what comes after it may be left out."""
_DELAY_S_MAX = 30.0


class Robots:
    """The rules of web sites. `get` asks for an address and follows redirects; it raises WebFailed."""

    def __init__(
        self,
        get: Callable[[str], Awaitable[WebAnswer]],
        user_agent: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._get = get
        self._user_agent = user_agent
        self._rules: TTLCache[str, Protego] = TTLCache(_SITES_MAX, _KEEP_S, timer=clock)

    async def check(self, url: str) -> None:
        """Raises WebFailed where the site does not want the address to be read by programs."""
        if not (await self._read_rules(url)).can_fetch(url, self._user_agent):
            raise WebFailed(
                f"{urlsplit(url).hostname} asks programs not to read this address (robots.txt); a person can open it in a browser",
                reason="ROBOTS_DISALLOW",
            )

    async def delay_s(self, url: str) -> float:
        """Seconds that the site wants between two requests, at most 30; 0 where it does not say."""
        return min(float((await self._read_rules(url)).crawl_delay(self._user_agent) or 0.0), _DELAY_S_MAX)

    async def sitemaps(self, url: str) -> list[str]:
        """Addresses of the sitemaps that the site names."""
        return list((await self._read_rules(url)).sitemaps)

    async def _read_rules(self, url: str) -> Protego:
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc.lower()}"
        known = self._rules.get(site)
        if known is None:
            known = self._rules[site] = Protego.parse(await self._text(f"{site}/robots.txt"))
        return known

    async def _text(self, url: str) -> str:
        """RFC 9309, 2.3.1: a site without the file allows all, one that fails to answer allows nothing for now."""
        answer = await self._get(url)
        if answer.status >= 500 or answer.status == 429:
            raise WebFailed(
                f"{urlsplit(url).hostname} could not say what programs may read (its robots.txt answered with "
                f"{answer.status}); try again later"
            )
        return answer.body[:_BYTES_MAX].decode(errors="replace") if answer.status == 200 else ""
