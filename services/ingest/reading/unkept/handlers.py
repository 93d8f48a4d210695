"""The edge of reading files that are not kept: the contract's call, handed on and encoded."""

from typing import Any

from groundwork.ingest.v1 import reading_pb2, reading_pb2_grpc

from kit.access.principal import current_principal
from services.ingest.reading.unkept.files import UnkeptFiles


class ReadingServicer(reading_pb2_grpc.ReadingServiceServicer):
    """reading.proto."""

    def __init__(self, files: UnkeptFiles) -> None:
        self._files = files

    async def ReadFile(
        self,
        request: reading_pb2.ReadFileRequest,
        context: Any,
    ) -> reading_pb2.ReadFileResponse:
        """The text of the file, in passages."""
        file = await self._files.read(current_principal().tenant_id, request.name, request.data)
        return reading_pb2.ReadFileResponse(
            title=file.title,
            media_type=file.media_type,
            passages=[
                reading_pb2.ReadPassage(
                    text=chunk.text, heading_path=chunk.heading_path, page=chunk.page, char_start=chunk.start
                )
                for chunk in file.chunks
            ],
            passages_left=file.chunks_left,
            warnings=file.warnings,
        )
