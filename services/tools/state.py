"""What the tools service keeps in the message store."""

from kit.state import DAY_S, Bucket

CALLS = Bucket(
    "TOOL_CALLS",
    holds="calls of tools with an effect, and what came of them until their run is erased",
    written_by=("tools",),
    kept_for_s=7 * DAY_S,  # a run that waits for a person may come back after days and ask for a call by its id
    if_lost="what became of a call that was cut off is not known",
)
STATE = (CALLS,)
