"""Language models as clients see them."""

from typing import Annotated, Literal

from fastapi import Path
from groundwork.orchestrator.v1.orchestrator_pb2 import ModelCredentials
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from services.gateway.schemas.fields import RequestBody
from services.gateway.schemas.times import Moment

Operation = Literal["plan", "answer", "verify", "summarise", "facts"]
OperationPath = Annotated[Operation, Path(description="What the model is asked for.")]
Preset = Literal["openai", "anthropic", "gemini", "grok", "ollama", "vllm", "llama.cpp", "openai-compatible"]


class ModelName(BaseModel):
    """A model of a provider."""

    provider: str = Field(description="Provider, by its name in the settings.")
    model: str = Field(description="Model name at that provider.")


class OperationModels(BaseModel):
    """What an operation asks."""

    operation: str = Field(description="`plan`, `answer`, `verify`, `summarise` or `facts`.")
    chain: list[ModelName] = Field(
        description="Its models in their order: the first answers, the others stand in for it."
    )
    set: bool = Field(description="Whether the first was set at run time; otherwise all is as configured.")
    set_by: str = Field(description="Who set it; empty when nobody did.")
    set_at: Moment | None = Field(description="When it was set; null when it was not.")


class ModelProvider(BaseModel):
    """Somebody who offers models."""

    name: str = Field(description="Its name in the settings.")
    preset: str = Field(description="Kind of provider; empty when the address decides.")
    models: list[str] = Field(description="The models that the settings list.")
    any_model: bool = Field(description="Whether an operation may be set to a model that is not listed.")
    state: Literal["closed", "open", "half_open", "unknown"] | None = Field(
        description="`closed`: it is asked. `open`: it failed again and again, and is left alone for a while. `half_open`: the "
        "next request tries it. As seen by one orchestrator."
    )
    problem: str = Field(
        description="What is wrong with it, as one orchestrator finds; empty where it answers. Operators read the reason, others "
        "only that it does not answer."
    )


class OfferedModel(BaseModel):
    """A model that a request to /v1/chat/completions or /v1/responses may name, in OpenAI's shape."""

    id: str = Field(description="`groundwork`, `groundwork/<agent>` or `groundwork/research`.")
    object: Literal["model"] = Field(default="model", description="What it is.")
    created: int = Field(default=0, description="Always 0.")
    owned_by: str = Field(default="groundwork", description="Always `groundwork`.")


class Models(BaseModel):
    """What each operation asks, and what there is."""

    object: Literal["list"] = Field(default="list", description="For clients of OpenAI's API.")
    data: list[OfferedModel] = Field(default_factory=list, description="The models that such clients may name.")

    operations: list[OperationModels] = Field(description="Empty where there is no model: answers are extractive.")
    providers: list[ModelProvider] = Field(description="In the order of the settings.")


class ModelChoice(RequestBody):
    """The model that an operation is to ask."""

    model_config = ConfigDict(json_schema_extra={"example": {"provider": "openai", "model": "gpt-4.1-mini"}})

    provider: str = Field(min_length=1, max_length=40, description="Provider, by its name in the settings.")
    model: str = Field(min_length=1, max_length=200, description="Model name at that provider.")
    force: bool = Field(default=False, description="Sets it although it does not answer now.")


class BroughtModel(RequestBody):
    """Your own model: this run asks it and no other. The key is never logged or shown, and is forgotten when the run ends. Give at
    least a `preset` or a `base_url`."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"base_url": "https://api.example.com/v1", "api_key": "…", "model": "gpt-4.1-mini"},
        },
    )

    base_url: str = Field(
        default="",
        max_length=2000,
        description="OpenAI-compatible endpoint on the public internet, usually ending in /v1; empty means the preset's.",
    )
    api_key: SecretStr = Field(default=SecretStr(""), max_length=2000, description="Key, if it wants one.")
    model: str = Field(min_length=1, max_length=200, description="Model name at that endpoint.")
    preset: Preset | None = Field(default=None, description="Kind of provider; null means that the address decides.")

    def brought(self) -> ModelCredentials:
        """For a run."""
        return ModelCredentials(
            base_url=self.base_url,
            api_key=self.api_key.get_secret_value(),
            model=self.model,
            preset=self.preset or "",
        )
