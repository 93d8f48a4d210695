"""What the gateway keeps in the message store."""

from kit.shared_state import API_KEY_USES, API_KEYS
from kit.state import DAY_S, Bucket, Stream, Watch

OIDC_LOGOUTS = Bucket(
    "OIDC_LOGOUTS",
    holds="who was logged out at an OIDC issuer, as digests",
    written_by=("gateway",),
    kept_for_s=2 * DAY_S,  # a token lives for a day at most, and clocks differ
    if_lost="tokens of people who were logged out let them in until they expire, a day later at the latest",
)
OIDC_SESSIONS = Bucket(
    "OIDC_SESSIONS",
    holds="who is logged in by their browser, by the digest of their cookie's secret",
    written_by=("gateway",),
    kept_for_s=DAY_S,  # as long as a login may last
    if_lost="people log in again",
)
GUESTS = Bucket(
    "GUESTS",
    holds="guests, by the digest of their cookie's secret, until all that they made is removed",
    written_by=("gateway",),
    watch=Watch.VALUES,  # nothing else says whose things are to be removed
    if_lost="guests are out, and what they made stays until it is removed with a key of their tenant that has the scope `admin`",
    advice="Restore a backup, or remove what is in the guests' tenant",
)
DIRECTORY = Bucket(
    "DIRECTORY",
    holds="users and groups that identity providers have sent by SCIM, deleted users too",
    written_by=("gateway",),
    watch=Watch.VALUES,  # a deactivation that was lost would open the door again
    if_lost="people who were deactivated may get in again, and groups have no members, until the provider sends them again",
    advice="Have the identity provider send all users and groups again, or restore a backup",
)
AUDIT = Stream(
    "AUDIT",
    "audit",
    holds="the audit log: who did what to what, from where; a chain for each tenant",
    written_by=("gateway",),
    kept_for="`GROUNDWORK_AUDIT_RETENTION_DAYS`, within `GROUNDWORK_AUDIT_MAX_BYTES`",
    if_lost="it is not known any more who did what before; entries that follow show the gap to `groundwork audit verify`",
)
STATE = (API_KEYS, API_KEY_USES, OIDC_LOGOUTS, OIDC_SESSIONS, GUESTS, DIRECTORY, AUDIT)
