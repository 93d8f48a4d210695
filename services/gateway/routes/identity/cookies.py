"""The cookies of people who come in by their browser."""

from starlette.responses import Response


def set_cookie(answer: Response, name: str, value: str, lives_s: int) -> None:
    """Sets a cookie that scripts do not see, and that no page of another site has sent along when it changes something."""
    answer.set_cookie(name, value, max_age=lives_s, path="/", secure=True, httponly=True, samesite="lax")
