"""How chunks lie in an Elasticsearch index: mapping, index template, and a document.

`text` and `title` hold terms that were made before they are sent, those of all languages side by side; the server only splits
them at spaces. `exact` is what is cited, cut into folded words: phrases are matched in it word for word. Nothing is mapped that is
not named here.
"""

from typing import Any

from kit.language.phrases import phrase_tokens
from services.retriever.analysis.analyser import Analysis
from services.retriever.indexes import filters
from services.retriever.indexes.chunk_encoding import citable_text, encode, point_id
from services.retriever.indexes.scoring import LENGTHS, TEXT, TITLE, kept_terms
from services.retriever.models import IndexedChunk, WriteKey
from services.retriever.options import ElasticsearchOptions

FORMAT = 5
"""Version of this mapping and analysis, part of the index's name. Change it with either: the index is then filled again from the
dense one, while retrievers of the release before go on with theirs."""
EXACT = "exact"
ORDINAL = "ordinal"
STORED = "stored"
TERMS = "terms"
"""Those of the fields that are scored, for the score of what was found."""
_META = "groundwork_format"


def index_name(options: ElasticsearchOptions) -> str:
    return f"{options.index}-v{FORMAT}"


def earlier_names(options: ElasticsearchOptions) -> list[str]:
    """What the index was called in earlier formats."""
    return [f"{options.index}-v{number}" for number in range(1, FORMAT)]


def index_template(options: ElasticsearchOptions) -> dict[str, Any]:
    """Arguments of `indices.put_index_template`: an index of that name is never made with guessed mappings, whichever process makes
    it."""
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


def document(key: WriteKey, item: IndexedChunk, analysis: Analysis) -> tuple[str, dict[str, Any]]:
    """A chunk's id in the index and what is indexed of it."""
    chunk = item.chunk
    title = " ".join((chunk.document_name, *chunk.heading_path))
    terms = {
        TEXT: analysis.terms(item.embedded_text, chunk.language),
        TITLE: analysis.terms(title, chunk.language),
    }
    source: dict[str, Any] = dict(filters.chunk_keywords(chunk, key))
    source |= filters.chunk_numbers(chunk)
    source |= {field: " ".join(terms[field]) for field in LENGTHS}
    source |= {column: len(terms[field]) for field, column in LENGTHS.items()}
    source |= {
        TERMS: kept_terms(terms[field] for field in LENGTHS),
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
        }
    }


def _mappings() -> dict[str, Any]:
    keywords = {field: _keyword(field) for field in filters.KEYWORD_FIELDS}
    numbers = {field: {"type": "long"} for field in filters.NUMERIC_FIELDS}
    return {
        "dynamic": "strict",
        "_meta": {_META: FORMAT},
        "_routing": {"required": True},
        # What a search reads of each hit: without the fields that are searched, which would be most of it.
        "_source": {"includes": [STORED, TERMS]},
        "properties": {
            **keywords,
            **numbers,
            **{column: {"type": "integer", "index": False} for column in LENGTHS.values()},
            **{field: {"type": "text", "analyzer": "whitespace"} for field in (TEXT, TITLE, EXACT)},
            ORDINAL: {"type": "integer", "doc_values": False},
            **{field: {"type": "object", "enabled": False} for field in (STORED, TERMS)},  # kept, not looked into
        },
    }


def _keyword(field: str) -> dict[str, Any]:
    # Only writes are aggregated over. Terms are bounded where they are made; none may be dropped for its length.
    return {"type": "keyword"} if field == filters.WRITE else {"type": "keyword", "doc_values": False}
