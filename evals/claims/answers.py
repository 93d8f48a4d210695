"""Claims as the product judges them: through the running system, each as the answer of a scripted model. The judge is the model of
EVAL_OPENAI_BASE_URL; without it one that is told what is true, so that only what happens to claims on their way is measured.
GROUNDWORK_VERIFY_JUDGE names another."""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.client.gateway import Gateway
from evals.claims.figures import CitationShares, Judged
from evals.claims.sets import LabelledClaim
from evals.retrieval.indexing import index
from evals.system import running_system
from kit.testing.claims import SAY, ClaimsModel
from kit.testing.openai import Reply, scripted_model

RIGHT = "told what is true"
_COLLECTION = "claims"
_CONTEXT_TOKENS = 32_768
_FOUND_BY_CHARS = 200
"""Of the passage, in the question: what search does not find is no matter of the judge."""
_GOOD = frozenset({"supported", "similar_wording"})


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible endpoint that judges."""

    base_url: str
    model: str
    api_key: str = ""

    @classmethod
    def from_environment(cls) -> "Endpoint | None":
        """Of EVAL_OPENAI_BASE_URL, EVAL_OPENAI_MODEL and EVAL_OPENAI_API_KEY; None without the first."""
        if not (base_url := os.environ.get("EVAL_OPENAI_BASE_URL")):
            return None
        model = os.environ.get("EVAL_OPENAI_MODEL", "default")
        return cls(base_url, model, os.environ.get("EVAL_OPENAI_API_KEY", ""))


async def judge_by_answers(claims: Sequence[LabelledClaim], endpoint: Endpoint | None) -> tuple[str, list[Judged]]:
    """The judge's name, and what the answers say of the claims. Raises SystemNotReady, EvaluationError, and what the gateway
    raises."""
    model = ClaimsModel({claim.text: claim.is_true for claim in claims})
    async with scripted_model(Reply()) as server:
        server.reply_to = model.reply_to
        with running_system(settings=_settings(server.base_url, endpoint)) as system:
            async with Gateway.open(system.url) as gateway:
                documents = await _indexed(gateway, claims)
                judged = [await _judged(gateway, claim, documents[_name(claim)]) for claim in claims]
    by_setting = os.environ.get("GROUNDWORK_VERIFY_JUDGE", "auto")
    return (endpoint.model if endpoint else RIGHT) if by_setting == "auto" else by_setting, judged


def _settings(base_url: str, endpoint: Endpoint | None) -> Mapping[str, str]:
    """The scripted model answers; the endpoint, if there is one, judges."""
    providers = {"script": {"base_url": base_url, "models": {"script": {"context_tokens": _CONTEXT_TOKENS}}}}
    operations = {"default": "script/script"}
    if endpoint:
        providers["judge"] = {
            "base_url": endpoint.base_url,
            "api_key": endpoint.api_key,
            "models": {endpoint.model: {}},
        }
        operations["verify"] = f"judge/{endpoint.model}"
    return {
        "GROUNDWORK_LLM_PROVIDERS": json.dumps(providers),
        "GROUNDWORK_LLM_OPERATIONS": json.dumps(operations),
        "GROUNDWORK_VERIFY_MODEL_TIMEOUT_S": "90",
    }


def _name(claim: LabelledClaim) -> str:
    return f"{abs(hash((claim.name, claim.passage)))}.md"


async def _indexed(gateway: Gateway, claims: Sequence[LabelledClaim]) -> Mapping[str, str]:
    """Each passage as a document; its id by the name of its file."""
    with tempfile.TemporaryDirectory(prefix="groundwork-evals-") as folder:
        await index(gateway, _COLLECTION, _written(claims, Path(folder)))
    found: dict[str, str] = {}
    token = ""
    while True:
        page = await gateway.request(
            "GET", f"/v1/collections/{_COLLECTION}/documents", params={"page_size": 100, "page_token": token}
        )
        found |= {each["name"]: each["id"] for each in page["documents"]}
        if not (token := page["next_page_token"] or ""):
            return found


def _written(claims: Sequence[LabelledClaim], folder: Path) -> Mapping[str, Path]:
    for claim in claims:
        (folder / _name(claim)).write_text(f"# {claim.name}\n\n{claim.passage}\n", "utf-8")
    return {_name(claim): folder / _name(claim) for claim in claims}


async def _judged(gateway: Gateway, claim: LabelledClaim, document_id: str) -> Judged:
    """A claim counts as supported when its answer shows it so, whatever was put in its place otherwise."""
    asked = f"{claim.passage[:_FOUND_BY_CHARS]} {SAY}{claim.text}"
    body = {"question": asked, "collection_ids": [_COLLECTION], "document_ids": [document_id]}
    answer = await gateway.request("POST", "/v1/qa", json=body)
    verification = answer["verification"] or {"sentences": []}
    said = [each for each in verification["sentences"] if each["verdict"] != "no_claim"]
    is_supported = answer["method"] == "model" and bool(said) and all(each["verdict"] in _GOOD for each in said)
    return Judged(claim, float(is_supported), is_supported, _citations(answer["verification"]))


def _citations(verification: Mapping[str, Any] | None) -> CitationShares | None:
    """None of an answer in which nothing was checked."""
    if not verification or not verification["sentences"]:
        return None
    return CitationShares(*(verification[f"citation_{each}"] or 0.0 for each in ("recall", "precision", "coverage")))
