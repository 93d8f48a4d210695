"""The sample documents: listed, made from their texts, and served as bytes that no browser runs."""

import json
from importlib import resources
from pathlib import Path

from scripts import gen_samples
from services.gateway.routes.documents.samples import load_samples

SAMPLES = Path(str(resources.files("services.gateway") / "samples"))


def test_the_list_names_exactly_the_files_that_are_there() -> None:
    listed = json.loads((SAMPLES / "samples.json").read_text("utf-8"))
    assert sorted([*listed["documents"], "samples.json"]) == sorted(load_samples(SAMPLES))


def test_pdf_and_word_file_are_those_that_their_texts_make() -> None:
    made = gen_samples.made()
    assert {path.suffix for path in made} == {".pdf", ".docx"}
    for path, content in made.items():
        assert path.read_bytes() == content, f"{path.name}: run make gen"


def test_samples_are_bytes_to_be_saved_and_only_the_list_is_json() -> None:
    types = {name: asset.media_type for name, asset in load_samples(SAMPLES).items()}
    assert types.pop("samples.json") == "application/json"
    assert set(types.values()) == {"application/octet-stream"}
