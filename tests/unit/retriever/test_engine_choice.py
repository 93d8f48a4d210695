"""Which engines the settings choose, and what is said when they cannot be had."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from kit.process.configuration import setting_problems
from services.retriever.app import _open_dense, _open_lexical
from services.retriever.errors import EngineUnsupported
from services.retriever.settings import RetrieverSettings

SECRET = "a-key-that-nobody-may-see"


def settings(**fields: Any) -> RetrieverSettings:
    return RetrieverSettings(**fields)


def test_without_addresses_the_engines_are_embedded() -> None:
    assert settings().qdrant is None
    assert settings().elasticsearch is None
    assert settings(qdrant_url="", elasticsearch_url="").qdrant is None


def test_addresses_and_credentials_reach_the_engines() -> None:
    chosen = settings(
        qdrant_url="https://qdrant:6333",
        qdrant_api_key=SECRET,
        elasticsearch_url="https://one, http://two:9201",
        elasticsearch_username="elastic",
        elasticsearch_password=SECRET,
    )
    assert chosen.qdrant is not None
    assert chosen.elasticsearch is not None
    assert chosen.elasticsearch.urls == ("https://one:9200", "http://two:9201")
    assert chosen.qdrant.api_key is not None
    assert chosen.qdrant.api_key.get_secret_value() == SECRET
    assert SECRET not in repr((chosen, chosen.qdrant, chosen.elasticsearch))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"qdrant_url": "qdrant:6333"}, "GROUNDWORK_QDRANT_URL=qdrant:6333 is not valid: it must be addresses like"),
        ({"elasticsearch_url": "https://a,ftp://b"}, "it must be addresses like https://host:port"),
        ({"elasticsearch_username": "elastic"}, "GROUNDWORK_ELASTICSEARCH_PASSWORD go together"),
        ({"elasticsearch_password": SECRET}, "GROUNDWORK_ELASTICSEARCH_PASSWORD go together"),
        ({"qdrant_ca_file": "/nowhere.pem"}, "GROUNDWORK_QDRANT_CA_FILE=/nowhere.pem is not valid"),
        ({"qdrant_replicas": 0}, "GROUNDWORK_QDRANT_REPLICAS=0 is not valid"),
        ({"elasticsearch_index": "Not An Index"}, "GROUNDWORK_ELASTICSEARCH_INDEX='Not An Index' is not valid"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_by_name(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        settings(**fields)
    (problem,) = setting_problems(caught.value, RetrieverSettings)
    assert says in problem
    assert SECRET not in problem


async def test_a_missing_client_names_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for engine in ("qdrant.spaces", "elasticsearch.index"):
        monkeypatch.setitem(sys.modules, f"services.retriever.adapters.{engine}", None)
    chosen = settings(data_dir=tmp_path, qdrant_url="http://q:6333", elasticsearch_url="http://e:9200")
    async with AsyncExitStack() as stack:
        with pytest.raises(EngineUnsupported, match=r"pip install 'groundwork\[qdrant\]'"):
            await _open_dense(chosen, stack)
        with pytest.raises(EngineUnsupported, match=r"pip install 'groundwork\[elasticsearch\]'"):
            await _open_lexical(chosen, stack)
