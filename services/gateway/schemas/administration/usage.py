"""Costs as clients see them."""

from pydantic import BaseModel, Field


class UsageRow(BaseModel):
    """The sum of some runs."""

    key: str = Field(description="The day, user, thread or model that they share; empty where they had none.")
    runs: int = Field(description="How many.")
    prompt_tokens: int = Field(description="Tokens that models read.")
    completion_tokens: int = Field(description="Tokens that models wrote.")
    cost_usd: float | None = Field(description="Dollars, by the prices at the time.")


class UsageAccount(BaseModel):
    """What runs have cost."""

    rows: list[UsageRow] = Field(description="By key.")
    total: UsageRow = Field(description="The sum of all rows.")
