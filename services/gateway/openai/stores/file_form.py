"""The form that OpenAI's clients upload files with: `file` and `purpose`, in any order, and fields that change nothing."""

from collections.abc import AsyncIterator

from services.gateway.errors import UnsupportedParameter
from services.gateway.serving.multipart import MultipartForm

PURPOSE = "purpose"
PURPOSES = ("assistants", "user_data")


class FileForm(MultipartForm):
    """A form with one file. What stands behind the file is read too."""

    def __init__(
        self, body: AsyncIterator[bytes], content_type: str, *, content_length: int | None, idle_timeout_s: float
    ) -> None:
        super().__init__(body, content_type, content_length=content_length, idle_timeout_s=idle_timeout_s)
        self.ignored: list[str] = []
        """Fields that change nothing."""

    def _announced_size(self) -> int:
        return 0  # fields may follow the file

    async def _take_early(self, name: str) -> None:
        self.metadata |= await self._known(name)

    async def _take_late(self, name: str) -> None:
        self.late_metadata |= await self._known(name)

    async def _known(self, name: str) -> dict[str, str]:
        """The field as metadata of the document. Raises UnsupportedParameter."""
        value = (await self._field()).decode("utf-8", "replace").strip()
        if name != PURPOSE:
            self.ignored.append(name)
            return {}
        if value not in PURPOSES:
            raise UnsupportedParameter(
                f"files are kept to be searched; send the purpose {PURPOSES[0]!r} or {PURPOSES[1]!r}, not {value[:40]!r}",
                field=PURPOSE,
            )
        return {PURPOSE: value}
