"""What the tools service keeps in the message store."""

from kit.state import DAY_S, Bucket

CALLS = Bucket(
    "TOOL_CALLS",
    holds="calls of tools with an effect, and what came of them until their run is erased",
    written_by=("tools",),
    kept_for_s=7 * DAY_S,  # a run that waits for a person may come back after days and ask for a call by its id
    if_lost="what became of a call that was cut off is not known",
)
SERVERS = Bucket(
    "TOOL_SERVERS",
    holds="MCP servers that tenants have added, and which tools of servers they have approved",
    written_by=("tools",),
    if_lost="servers of tenants are gone, and tools of MCP servers are withheld until they are approved again",
)
CONNECTIONS = Bucket(
    "TOOL_CONNECTIONS",
    holds="connections of users and tenants to services such as GitHub, with their credentials, sealed",
    written_by=("tools",),
    if_lost="the services must be connected again",
)
STATE = (CALLS, SERVERS, CONNECTIONS)
