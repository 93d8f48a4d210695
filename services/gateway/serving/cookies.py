"""The cookies of people who come in by their browser."""

from typing import NamedTuple

from starlette.responses import Response


class NewCookie(NamedTuple):
    """What a cookie becomes."""

    value: str
    lives_s: int


def set_cookie(answer: Response, name: str, value: str, lives_s: int) -> None:
    """Sets a cookie that scripts do not see, and that no page of another site has sent along when it changes something."""
    answer.set_cookie(name, value, max_age=lives_s, path="/", secure=True, httponly=True, samesite="lax")


def cookie_header(name: str, cookie: NewCookie) -> str:
    """The value of Set-Cookie, for an answer that is made elsewhere."""
    answer = Response()
    set_cookie(answer, name, *cookie)
    return answer.headers["set-cookie"]
