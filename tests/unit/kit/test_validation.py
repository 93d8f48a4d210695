"""What pydantic finds wrong, in plain words."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kit.validation import expectation


class Request(BaseModel):
    """Some kinds of members."""

    model_config = ConfigDict(extra="forbid", strict=True)

    question: str = Field(default="why", min_length=1, max_length=8)
    ids: list[str] = Field(default_factory=lambda: ["a"], min_length=1)
    top_k: int = Field(default=1, ge=1)
    scope: Literal["query", "ingest"] = "query"
    nested: dict[str, bool] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"question": "why not?!"}, "it must have at most 8 characters"),
        ({"question": ""}, "it must have at least 1 character"),
        ({"question": 5}, "it must be text"),
        ({"ids": []}, "it must have at least 1 item"),
        ({"ids": "a"}, "it must be a list"),
        ({"top_k": True}, "it must be a whole number"),
        ({"top_k": 0}, "it must be at least 1"),
        ({"scope": "root"}, "it must be one of query, ingest"),
        ({"nested": []}, "it must be an object"),
        ({"nested": {"a": "yes"}}, "it must be true or false"),
        ({"qestion": "why"}, "there is nothing of this name"),
    ],
)
def test_what_is_wrong_is_said_without_words_of_the_parser(members: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Request.model_validate(members)
    assert [expectation(each) for each in refused.value.errors()] == [words]
