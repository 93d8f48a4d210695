"""How a client becomes a guest."""

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.schemas.fields import RequestBody
from services.gateway.schemas.times import Moment


class GuestOffer(BaseModel):
    """Whether people without an account are let in."""

    allowed: bool = Field(description="Whether they are.")
    hours: float = Field(description="How long a guest may stay, in hours.")


class GuestChallenge(BaseModel):
    """Work to be done by a client that wants to become a guest."""

    challenge: str = Field(description="To be sent back with the solution; good for one guest, from the same address.")
    seed: str = Field(description="Begins the text that is hashed.")
    bits: int = Field(
        description="Find a whole number so that the SHA-256 of `<seed>.<number>` begins with so many zero bits: that number is "
        "the solution."
    )
    expires_at: Moment = Field(description="Until when the solution is taken.")


class GuestProof(RequestBody):
    """A challenge that was solved."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"challenge": "0a1b….18.1764000000.9f8e…", "solution": "81723"}}
    )

    challenge: str = Field(min_length=1, max_length=200, description="As it came.")
    solution: str = Field(min_length=1, max_length=16, description="The number, in decimal digits.")


class GuestSession(BaseModel):
    """A guest's stay, which the cookie of the answer is good for."""

    tenant: str = Field(description="Tenant of all guests.")
    subject: str = Field(description="Who the guest is there.")
    ends_at: Moment = Field(description="When the stay is over, and all that the guest made is removed.")
