"""Chunks as documents of tantivy: the schema, a document of a chunk, and the same document again from what is stored of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import tantivy

from kit.language.phrases import phrase_tokens
from services.retriever.adapters.tantivy.query import EXACT, KEY, key_term
from services.retriever.analysis.analyser import Analysis
from services.retriever.indexes import filters
from services.retriever.indexes.chunk_encoding import citable_text, decode, encode
from services.retriever.indexes.scoring import LENGTHS, TEXT, TITLE, kept_terms, read_kept_terms
from services.retriever.models import Chunk, IndexedChunk, WriteKey

STORED = "stored"
TERMS = "terms"
"""Those of the fields that are scored, for the score of what was found."""
ORDINAL = "ordinal"


def make_schema() -> Any:
    """Few fields: for each one tantivy builds a dictionary, with a cache of 20 000 nodes, at each commit and each merge. So
    all exact-match fields share one, whose terms name theirs, and numbers are columns without a dictionary."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(KEY, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(TEXT, tokenizer_name="whitespace", index_option="position")
    builder.add_text_field(TITLE, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field(EXACT, tokenizer_name="whitespace", index_option="position")
    for field in filters.NUMERIC_FIELDS:
        builder.add_integer_field(field, indexed=False, fast=True)
    for column in LENGTHS.values():
        builder.add_integer_field(column, indexed=False, fast=True)
    for field in (TERMS, STORED):
        builder.add_bytes_field(field, stored=True, indexed=False)
    return builder.build()


def make_document(key: WriteKey, item: IndexedChunk, analysis: Analysis) -> Any:
    """The document of a chunk."""
    title, language = " ".join((item.chunk.document_name, *item.chunk.heading_path)), item.chunk.language
    terms = {TEXT: analysis.terms(item.embedded_text, language), TITLE: analysis.terms(title, language)}
    return _document(key, item.chunk, terms, encode(item.chunk).encode())


def make_again(key: WriteKey, document: Any) -> Any:
    """A document of the same content as one that was found."""
    stored: bytes = document.get_first(STORED)
    terms = dict(zip(LENGTHS, read_kept_terms(document.get_first(TERMS).decode()), strict=True))
    return _document(key, decode(stored.decode()).chunk, terms, stored)


def _document(key: WriteKey, chunk: Chunk, terms: Mapping[str, Sequence[str]], stored: bytes) -> Any:
    document = tantivy.Document()
    for field, values in filters.chunk_keywords(chunk, key).items():
        for value in values:
            document.add_text(KEY, key_term(field, value))
    document.add_text(KEY, key_term(ORDINAL, str(chunk.ordinal)))
    for field, column in LENGTHS.items():
        document.add_text(field, " ".join(terms[field]))
        document.add_integer(column, len(terms[field]))
    document.add_bytes(TERMS, kept_terms(terms[field] for field in LENGTHS).encode())
    document.add_text(EXACT, " ".join(phrase_tokens(citable_text(chunk))))
    for field, number in filters.chunk_numbers(chunk).items():
        document.add_integer(field, number)
    document.add_bytes(STORED, stored)
    return document
