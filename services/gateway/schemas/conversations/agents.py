"""Agents and modes as clients see them."""

from pydantic import BaseModel, Field

from services.gateway.schemas.fields import RequestBody
from services.gateway.schemas.times import Moment


class Agent(BaseModel):
    """Who answers a question: a prompt, a way to search, tools, and the shape of the answer."""

    name: str = Field(description="What a question names as its `agent`.")
    description: str = Field(description="What it is for.")
    modes: list[str] = Field(description="Modes whose questions may name it.")
    is_default: bool = Field(description="Whether it answers what fits no other agent.")
    makes_block: bool = Field(description="Whether its answers have a `block`.")
    tools: list[str] = Field(description="Tools that it may call.")


class Mode(BaseModel):
    """One way to serve a question."""

    name: str = Field(description="Its name.")
    description: str = Field(description="What it does with a question.")
    needs_collections: bool = Field(description="Whether a question must name collections.")
    takes_documents: bool = Field(description="Whether a question may name documents to keep to.")
    takes_tools: bool = Field(description="Whether a question may choose tools.")
    takes_agents: bool = Field(description="Whether a question may name an agent.")


class SwitchedOffAgent(BaseModel):
    """An agent that is switched off."""

    name: str = Field(description="Its name.")
    by: str = Field(description="Who switched it off.")
    at: Moment | None = Field(description="When.")


class AgentSwitch(RequestBody):
    """Whether an agent is to be on."""

    enabled: bool = Field(description="`false` switches it off.")


class SwitchedOffAgents(BaseModel):
    """Agents that are switched off."""

    switched_off: list[SwitchedOffAgent] = Field(description="By name.")


class AgentList(BaseModel):
    """Who may answer, and how."""

    agents: list[Agent] = Field(description="By name.")
    modes: list[Mode] = Field(description="By name.")
    switched_off: list[SwitchedOffAgent] = Field(
        default_factory=list,
        description="Agents that an operator has switched off. `research` serves `POST /v1/agent`: its questions get one search.",
    )
