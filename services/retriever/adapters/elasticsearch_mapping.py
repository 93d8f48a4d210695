"""How chunks lie in an Elasticsearch index: analysis, mapping, index template, and a document.

Each language has a field of its own under `text` and `title`, analysed its way; a chunk fills that of its language only, so
that term statistics are those of the language. `exact` is what is cited, cut into folded words before it is sent: phrases
are matched in it word for word. Nothing is mapped that is not named here.
"""

from typing import Any

from kit.language.phrases import phrase_tokens
from services.retriever import filters
from services.retriever.adapters.elasticsearch_analysis import analysis, field_name, index_analyser
from services.retriever.languages import ANALYSERS, analyser_of, prepared
from services.retriever.models import IndexedChunk, WriteKey
from services.retriever.options import ElasticsearchOptions
from services.retriever.stored_chunk import citable_text, encode, point_id

FORMAT = 1
"""Version of this mapping and analysis, part of the index's name. Change it with either: documents must then be indexed again."""
TEXT = "text"
TITLE = "title"
EXACT = "exact"
ORDINAL = "ordinal"
STORED = "stored"
_META = "groundwork_format"


def index_name(options: ElasticsearchOptions) -> str:
    """The index behind the alias `options.index`, by which everything else calls it."""
    return f"{options.index}-v{FORMAT}"


def index_template(options: ElasticsearchOptions) -> dict[str, Any]:
    """Arguments of `indices.put_index_template`: an index of that name is never made with guessed mappings, whoever makes it."""
    return {
        "name": options.index,
        "index_patterns": [index_name(options)],
        "priority": 500,  # above the server's own, which are at 100 to 200
        "version": FORMAT,
        "template": {"settings": _settings(options), "mappings": _mappings()},
    }


def format_of(mappings: dict[str, Any]) -> int | None:
    """The version of an index's mapping; None when it was not made here."""
    number = mappings.get("_meta", {}).get(_META)
    return number if isinstance(number, int) else None


def document(key: WriteKey, item: IndexedChunk) -> tuple[str, dict[str, Any]]:
    """A chunk's id in the index and what is indexed of it."""
    chunk = item.chunk
    analyser = analyser_of(chunk.language)
    field = field_name(analyser)
    source: dict[str, Any] = dict(filters.chunk_keywords(chunk, key))
    source |= filters.chunk_numbers(chunk)
    source |= {
        TEXT: {field: prepared(item.embedded_text, analyser)},
        TITLE: {field: prepared(" ".join((chunk.document_name, *chunk.heading_path)), analyser)},
        EXACT: " ".join(phrase_tokens(citable_text(chunk))),
        ORDINAL: chunk.ordinal,
        STORED: encode(chunk),
    }
    return str(point_id(key.revision.tenant_id, chunk.chunk_id)), source


def _settings(options: ElasticsearchOptions) -> dict[str, Any]:
    return {
        "index": {
            "number_of_shards": options.shards,
            "number_of_replicas": options.replicas,
            # What is committed is refreshed at once; in between there is nothing that anyone should see early.
            "refresh_interval": "30s",
            "translog": {"durability": "request"},  # a write that was acknowledged survives a kill
            "analysis": analysis(),
        }
    }


def _mappings() -> dict[str, Any]:
    keywords = {field: _keyword(field) for field in filters.KEYWORD_FIELDS}
    numbers = {field: {"type": "long"} for field in filters.NUMERIC_FIELDS}
    return {
        "dynamic": "strict",
        "_meta": {_META: FORMAT},
        "_routing": {"required": True},
        "properties": {
            **keywords,
            **numbers,
            TEXT: {"properties": _by_language()},
            TITLE: {"properties": _by_language()},
            EXACT: {"type": "text", "analyzer": "whitespace"},
            ORDINAL: {"type": "integer", "doc_values": False},
            STORED: {"type": "object", "enabled": False},  # kept in the source, not looked into
        },
    }


def _keyword(field: str) -> dict[str, Any]:
    # Only writes are aggregated over. Terms are bounded where they are made; none may be dropped for its length.
    return {"type": "keyword"} if field == filters.WRITE else {"type": "keyword", "doc_values": False}


def _by_language() -> dict[str, Any]:
    return {field_name(analyser): {"type": "text", "analyzer": index_analyser(analyser)} for analyser in ANALYSERS}
