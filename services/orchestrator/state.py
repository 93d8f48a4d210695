"""What the orchestrator keeps in the message store."""

from kit.shared_state import (
    FORGET,
    LIMIT_COUNTS,
    LIMIT_CREDITS,
    LIMIT_RATES,
    LIMIT_RULES,
    LIMIT_SECONDS,
    MODEL_SETTINGS,
)
from kit.state import DAY_S, BellSubject, Bucket, Queue, Stream, Watch

_WRITERS = ("orchestrator",)
_RETENTION = "`GROUNDWORK_RUN_RETENTION_DAYS`"

FORGOTTEN = Bucket(
    "FORGOTTEN",
    holds="what running answers must not quote any more",
    written_by=_WRITERS,
    kept_for_s=DAY_S,  # longer than any run goes on: one that searched before a deletion meets the mark when it wants to write
    watch=Watch.VALUES,
    if_lost="an answer that is being given may quote what was deleted meanwhile",
    advice="Look through the answers that were being given when something was deleted in the last day (groundwork runs), and "
    "delete those that quote it",
    not_ours="the key says it all",
)
MODEL_CREDENTIALS = Bucket(
    "MODEL_CREDENTIALS",
    holds="keys of models that users bring, sealed, until their run ends or is erased",
    written_by=_WRITERS,
    kept_for="`GROUNDWORK_MODEL_CREDENTIALS_LIFE_S`",
    if_lost="another orchestrator cannot go on with the run by that model",
    is_secret=True,
)
MARKERS = Bucket(
    "RUN_ACTIVE",
    holds="which answers are being given",
    written_by=_WRITERS,
    watch=Watch.VALUES,
    if_lost="an unfinished run goes on only when somebody asks for it",
)
CANCELS = Bucket(
    "RUN_CANCELS",
    holds="runs that are to be cancelled",
    written_by=_WRITERS,
    kept_for_s=DAY_S,
    if_lost="the runs go on: cancel them again",
    not_ours="the key says it all",
)
COSTS = Bucket(
    "RUN_COSTS",
    holds="what each run has cost",
    written_by=_WRITERS,
    kept_for="`GROUNDWORK_USAGE_RETENTION_DAYS`",
    if_lost="the usage that is shown is too low",
)
AGENT_SWITCHES = Bucket(
    "AGENT_SWITCHES",
    holds="agents that an operator has switched off",
    written_by=_WRITERS,
    if_lost="agents that were switched off are on again",
)
KEYS = Bucket(
    "RUN_KEYS",
    holds="idempotency keys of runs",
    written_by=_WRITERS,
    kept_for="`GROUNDWORK_RUN_KEY_TTL_S`",
    if_lost="a question that is sent again begins a second run",
)
OWNERS = Bucket(
    "RUN_OWNERS",
    holds="which orchestrators live",
    written_by=_WRITERS,
    kept_for="`GROUNDWORK_RUN_LEASE_S`",
    if_lost="each orchestrator writes itself down again",
    not_ours="the key says it all",
)
RECORDS = Bucket(
    "RUN_RECORDS",
    holds="runs: question, state, answer and cost",
    written_by=_WRITERS,
    is_erased=True,
    needed_by=("RUN_ACTIVE", "RUN_KEYS"),
    kept_for=_RETENTION,
    watch=Watch.COUNTS,
    if_lost="the runs are not found",
)
SOURCES = Bucket(
    "RUN_SOURCES",
    holds="which runs quote which documents",
    written_by=_WRITERS,
    needed_by=("DOCUMENTS", "THREADS"),
    kept_for=f"{_RETENTION}; in a thread as long as the thread",
    watch=Watch.VALUES,
    if_lost="noted again from the runs' logs at the next start",
    advice="Restart Groundwork, which notes them again from the runs' logs. Answers in threads that are older than those logs are "
    "not found when a document that they quote is deleted: delete such threads, too",
)
STORED_RUNS_NOTED = "older-runs-are-noted"
"""Key in RUN_SOURCES. While it is there, the sources of all runs are noted; else they are read from all logs at the start."""
RUNS = Stream(
    "RUNS",
    "runs",
    "logged",
    holds="events of runs, one subject a run",
    written_by=_WRITERS,
    is_erased=True,
    needed_by=("RUN_RECORDS",),
    kept_for=_RETENTION,
    watch=Watch.COUNTS,
    if_lost="a run that had begun ends as failed with `RUN_LOG_LOST`",
)
LEARN = Queue(
    "LEARN",
    "learn",
    holds="turns that are to be learnt from: what their users said",
    written_by=_WRITERS,
    is_erased=True,
    kept_for="until it is done",
    if_lost="nothing is learnt from these turns",
    advice="Say again what is to be remembered",
)
BELL = BellSubject("runs", rung_by=_WRITERS)
STATE = (
    AGENT_SWITCHES, LIMIT_RULES, LIMIT_COUNTS, LIMIT_CREDITS, LIMIT_RATES, LIMIT_SECONDS,
    FORGOTTEN, MODEL_CREDENTIALS, MODEL_SETTINGS, MARKERS, CANCELS, COSTS, KEYS, OWNERS, RECORDS, SOURCES, RUNS, LEARN, FORGET,
    BELL,
)  # fmt: skip
