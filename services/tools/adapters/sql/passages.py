"""What a database answered, as a passage that an answer may cite: the run keeps its text, so that a citation opens the statement
and the rows that were read then."""

from groundwork.retriever.v1 import retriever_pb2 as pb

from services.tools.adapters.services.retriever import passage_of
from services.tools.models import Passage
from services.tools.sql.rendering import chunk_id


def answer_passage(database: str, text: str) -> Passage:
    """The same answer to the same statement has the same id."""
    return passage_of(
        pb.Hit(
            chunk=pb.Chunk(
                chunk_id=chunk_id(database, text),
                document_id=f"database-{database}",
                document_name=f"Database {database}",
                text=text,
                char_end=len(text),
            )
        )
    )
