# ruff: noqa: E501
"""Events of a run as clients see them: one model a kind. Made from orchestrator.proto and its comments by `make gen`."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.schemas.documents.search import BoundingBox, Degradation, Origin
from services.gateway.schemas.times import Moment

RunStatus = Literal["running", "completed", "refused", "cancelled", "timeout", "failed", "unknown", "waiting"]
SupportStatus = Literal["supported", "partial", "insufficient", "unavailable", "unknown", "similar_wording"]
AnswerStatus = Literal["likely", "uncertain", "unlikely", "unknown"]
PartState = Literal["found", "partly", "conflicting", "missing", "unknown"]
ApprovalDecision = Literal["pending", "allowed", "denied", "expired", "unknown"]
InputState = Literal["pending", "answered", "expired", "unknown"]


class Event(BaseModel):
    """What every event carries."""

    model_config = ConfigDict(extra="forbid")

    run_id: str = Field(description="The run.")
    seq: int = Field(description="Position in the run's log, from 1 without gaps; also the event's `id:`.")
    at: Moment | None = Field(description="When it happened.")
    step: str = Field(description="Step of the run that it belongs to; empty for none.")


class ToolError(BaseModel):
    """Why a call of a tool did not work."""

    reason: str = Field(
        description="UPPER_SNAKE. `IN_DOUBT`: nobody knows whether the call took effect, and it is not repeated."
    )
    message: str = Field(description="What happened and what to do, for a person.")


class BudgetsInForce(BaseModel):
    """Limits of a run."""

    wall_clock_s: float | None = Field(
        description="Time worked on the run. While nobody works on it, after a crash or while it waits for a decision, it does not count."
    )
    answer_tokens: int = Field(description="Tokens a model may write in the answer.")
    steps: int = Field(description="Steps whose result is recorded: each plan, search, answer and tool call is one.")
    tool_calls: int = Field(description="Calls of tools.")
    parallel_calls: int = Field(description="Calls of tools under way at once; more wait for their turn.")
    tokens: int = Field(
        description="Tokens that models read and write in all steps together. Checked before each use of a model: one that has begun ends."
    )
    cost_usd: float | None = Field(description="Dollars, by the configured prices. Checked as tokens are.")
    reasoning_steps: int = Field(
        description="How often the model may ask for tools before it has to answer: `steps` of an HTTP request."
    )


class MetadataValues(BaseModel):
    """One metadata field and the values that it may have."""

    key: str = Field(description="Field name.")
    values: list[str] = Field(description="Any of these.")


class SearchFilter(BaseModel):
    """What every search of a run keeps to."""

    metadata: list[MetadataValues] = Field(
        description="Metadata fields that must equal one of the values, such as `channel` or `author`. Keys as given at upload."
    )
    date_from: Moment | None = Field(description="Only passages dated at or after this. Absent: no limit.")
    date_to: Moment | None = Field(description="Only passages dated before this. Absent: no limit.")


class SubQuery(BaseModel):
    """One search of a round."""

    text: str = Field(description="What is searched for.")
    purpose: str = Field(
        description="Why: `question`, `subject` (a name of the question), `part`, `phrase` (must be found), `name` (that a found passage mentions), `filtered` (by the time or channel that the question names), `rewrite` or `hypothesis` (a passage as it might answer)."
    )
    strategy: str = Field(description="`lexical`, `dense` or `hybrid`.")
    filter: SearchFilter | None = Field(
        description="What this search alone keeps to besides the plan's filter: the time, channel or author that the question names. Absent: nothing."
    )


class StageRank(BaseModel):
    """Where a passage stood at one stage."""

    stage: str = Field(
        description="`dense`, `lexical`, `fused`, `rerank` or `diversity` of one search; `queries`: the fusion over all searches."
    )
    rank: int = Field(description="From 1.")
    score: float | None = Field(description="Comparable within its stage and query only.")
    query: str = Field(description="The search; empty for `queries`.")


class Evidence(BaseModel):
    """One passage of the evidence set."""

    number: int = Field(description="Citation number.")
    chunk_id: str | None = Field(description="Chunk.")
    document_id: str | None = Field(description="Document.")
    document_name: str = Field(description="Document name.")
    page: int | None = Field(description="Page, 1-based; null where there are none.")
    heading_path: list[str] = Field(description="Headings above it.")
    text: str = Field(description="The passage.")
    score: float | None = Field(description="Score of the last stage that ranked it.")
    dense_score: float | None = Field(description="Cosine to the question, when the dense engine returned it.")
    char_start: int = Field(description="First character in the document's cleaned text.")
    char_end: int = Field(description="One past the last character.")
    bounding_boxes: list[BoundingBox] = Field(description="Its lines on their pages.")
    collection_id: str | None = Field(description="Its collection.")
    ranks: list[StageRank] = Field(description="Where it stood at each stage of each search. Of a research run.")
    origin: Origin | None = Field(description="Who wrote it, when and where; unset where nothing of it is known.")


class DroppedPassage(BaseModel):
    """A passage that was found and left out."""

    chunk_id: str | None = Field(description="Chunk.")
    document_name: str = Field(description="Document name.")
    stage: str = Field(
        description="Where it was left out: `duplicate` or `near_duplicate` (of `kept_chunk_id`), `top_k` (others rank higher), or a stage of the search."
    )
    kept_chunk_id: str | None = Field(description="Of a duplicate: the chunk that stands for it.")


class DecidingSpan(BaseModel):
    """The words of a passage that decide about a claim."""

    document_id: str | None = Field(description="Document.")
    document_name: str = Field(description="Document name.")
    chunk_id: str | None = Field(description="Chunk.")
    start: int = Field(description="First character (code point) in the chunk's text.")
    end: int = Field(description="One past the last.")
    text: str = Field(description="The words, at most 500 characters.")


class CheckedBy(BaseModel):
    """Who has judged a claim, and how often that judge is wrong."""

    name: str = Field(
        description="Name of the judge: 'model/' with the model's name, the name of a judge of the model server, `words`; `quotes` (word for word), `table` (a row put together from its cells), `effects` (what the run has done)."
    )
    measured: bool = Field(
        description="Whether its error was measured and is small enough for it to say that a source supports a claim. docs/evaluation.md has the figures and the bound."
    )
    false_passed: float | None = Field(
        description="Share of false claims that pass, on labelled claims. Null where it was not measured."
    )
    true_failed: float | None = Field(description="Share of true claims that do not pass.")
    claims: int = Field(description="Labelled claims that it was measured on; 0 where it was not.")


class SentenceVerdict(BaseModel):
    """The verdict on one claim: a sentence, or a part of one that has citations of its own."""

    sentence: str = Field(description="The claim, citation marks removed.")
    verdict: str = Field(
        description="`supported`; `similar_wording` (as far as a judge that is not accurate enough can tell); `partly`; `contradicted`; `not_found`; or `no_claim` (there is nothing to check, as in small talk)."
    )
    citations: list[int] = Field(
        description="Citation numbers it carries, as they stand in the answer. A claim that is not supported carries none."
    )
    score: float | None = Field(
        description="How much speaks for it, 0 to 1: the judge's probability; without one 1 for supported, 0.5 for partly, 0 otherwise."
    )
    is_action: bool = Field(
        description="Whether it says that the assistant has done something: it was compared with the effects of the run, not with documents."
    )
    start: int = Field(description="First character (code point) of the claim in the answer.")
    end: int = Field(
        description="One past its last character, before its citation marks; equal to `start` where it does not stand in the answer."
    )
    span: DecidingSpan | None = Field(description="The words that decide. Null where there are none.")
    probability: float | None = Field(
        description="Calibrated probability that its passages carry it, 0 to 1. Null where the judge gives none."
    )
    checked_by: CheckedBy | None = Field(description="The judge.")
    searched: bool = Field(description="Whether it was searched for by itself, because its citations did not carry it.")
    removed: bool = Field(description="Whether its sentence was left out of the answer.")


class Citation(BaseModel):
    """A cited passage."""

    number: int = Field(description="Number in the text.")
    document_id: str | None = Field(description="Document.")
    document_name: str = Field(description="Document name.")
    chunk_id: str | None = Field(description="Chunk.")
    page: int | None = Field(description="Page, 1-based; null where there are none.")
    text: str = Field(description="The passage.")
    quote_start: int = Field(description="First character of the cited words in the passage.")
    quote_end: int = Field(description="One past the last; equal to quote_start when the quote is the whole passage.")
    bounding_boxes: list[BoundingBox] = Field(
        description="The lines of the cited words on their pages; all lines of the passage when the quote is the whole passage."
    )
    heading_path: list[str] = Field(description="Headings above it.")
    origin: Origin | None = Field(description="Who wrote it, when and where; unset where nothing of it is known.")


class ConflictSide(BaseModel):
    """One side of a conflict."""

    value: str = Field(description="The value, as its source writes it.")
    citation: int = Field(description="Citation that says it: Citation.number.")
    start: int = Field(description="First character of the value in the text of that citation.")
    end: int = Field(description="One past the last.")
    date: str = Field(
        description="Date of the source, ISO 8601, as far as it is known: '2024-05-31', '2024'. Empty where it is not."
    )
    document_id: str | None = Field(description="Document.")
    document_name: str = Field(description="Document name.")


class Conflict(BaseModel):
    """Sources that say different things of the one thing that was asked."""

    what: str = Field(
        description="What they disagree about: the statement that they share, with '…' for the value; of rows the name and the column."
    )
    sides: list[ConflictSide] = Field(
        description="At least two, one for each value: those with a date first, the newest before the others."
    )
    found_by: str = Field(
        description="`wording`: found by sentences or rows that are the same but for the value. `model`: by a language model that compared the passages."
    )


class CoveragePart(BaseModel):
    """One part of the question."""

    text: str = Field(description="The part.")
    kind: str = Field(
        description="`subject` (what the question is about), `bridge` (who stands in a relation to it) or `asked` (what is asked of it)."
    )
    state: PartState | None = Field(description="State.")
    score: float | None = Field(description="How well its best passage speaks of it, 0 to 1.")
    evidence: list[int] = Field(description="Numbers of the passages that speak of it, best first, at most three.")


class Coverage(BaseModel):
    """What the evidence covers: each part of the question with its passages."""

    parts: list[CoveragePart] = Field(description="In the order of the question.")
    share: float | None = Field(
        description="Mean of the parts' scores, 0 to 1. From 0.8 on nothing more is searched for."
    )
    round: int = Field(description="Round after which it was measured.")
    investigation: str = Field(
        description="The sub-investigation whose parts these are, as in Plan; empty for the whole question."
    )


class Verification(BaseModel):
    """What was checked: a verdict a claim, and how well the whole is carried and answers."""

    sentences: list[SentenceVerdict] = Field(
        description="One verdict a claim, in order. A sentence that makes several claims has one for each."
    )
    citation_precision: float | None = Field(description="Share of citations that carry their claim, 0 to 1.")
    citation_coverage: float | None = Field(description="Share of claims carried by a citation, 0 to 1.")
    support_status: SupportStatus | None = Field(description="Judgement of the whole: whether its sources carry it.")
    answer_confidence: float | None = Field(
        description="Calibrated probability that it answers the question, 0 to 1. Null where that was not judged."
    )
    answer_status: AnswerStatus | None = Field(
        description="The same in a word: `likely` from 0.75 on, `unlikely` under 0.5."
    )
    checked_by: CheckedBy | None = Field(
        description="The judge of the claims; the least certain of them where there were several. Null where nothing was checked."
    )
    verify: str = Field(
        description="What becomes of a claim that is not supported: `mark`, `remove` or `off`; off: nothing was checked."
    )
    removed: int = Field(description="Sentences that were left out of the answer.")
    citation_recall: float | None = Field(
        description="Share of claims that are carried by the citations they were written with, 0 to 1 (citation recall: Gao et al., arXiv:2305.14627). citation_coverage counts also those for which another passage was found."
    )


class ArtefactItem(BaseModel):
    """A part of an artefact that rests on passages: a cell, a node, a question."""

    path: str = Field(description="Its place in the body: a JSON Pointer (RFC 6901), for example '/rows/0/2'.")
    citations: list[int] = Field(description="Numbers of the artefact's citations.")


class Artefact(BaseModel):
    """Something that an agent has made besides its text: a table, a quiz, a diagram."""

    artefact_id: str | None = Field(description="Names it within its run, for example 'quiz1'.")
    kind: str = Field(
        description="What it is, for example `table`; docs/agents.md lists the kinds and the schema of each."
    )
    title: str = Field(description="One line for people.")
    body: dict[str, Any] | None = Field(description="What it says, by the schema of its kind.")
    items: list[ArtefactItem] = Field(description="Which citations carry which parts of the body.")
    citations: list[Citation] = Field(description="The cited passages, numbered 1, 2, 3 … within the artefact.")
    outline: str = Field(description="The same as plain text, for clients that do not draw the kind.")


class FunctionCall(BaseModel):
    """A call of a function of the caller's."""

    call_id: str | None = Field(description="Names the call for its result.")
    name: str = Field(description="Function.")
    arguments: str = Field(description="Arguments, as JSON text.")


class StepUsage(BaseModel):
    """What one step took, all attempts at it together."""

    step: str = Field(description="Name of the step.")
    seconds: float | None = Field(description="Seconds.")
    prompt_tokens: int = Field(description="Tokens that models read.")
    completion_tokens: int = Field(description="Tokens that models wrote.")
    cost_usd: float | None = Field(description="Dollars, by the configured prices.")
    model: str = Field(description="Model used last; empty for none.")


class Usage(BaseModel):
    """What it cost, on every way out: of a cancelled or failed run too."""

    prompt_tokens: int = Field(default=0, description="Tokens the model read.")
    completion_tokens: int = Field(default=0, description="Tokens the model wrote.")
    seconds: float | None = Field(default=0.0, description="Seconds from start to end.")
    cost_usd: float | None = Field(
        default=0.0, description="Dollars, by the configured prices; 0 when none are configured."
    )
    step_seconds: dict[str, float | None] = Field(default_factory=dict, description="Seconds by step.")
    model: str = Field(default="", description="Model that wrote the answer; empty when extractive.")
    steps: list[StepUsage] = Field(
        default_factory=list, description="What each step took, in order of their beginning."
    )
    worked_seconds: float | None = Field(
        default=0.0,
        description="Seconds that somebody worked on the run: without the time after a crash, or spent waiting for a decision.",
    )
    tool_calls: int = Field(default=0, description="Calls of tools.")


class RunStartedEvent(Event):
    """`run`: the run begins."""

    mode: str | None = Field(description="Pipeline.")
    thread_id: str | None = Field(description="Thread, or null.")
    question: str = Field(description="The user's words.")
    collection_ids: list[str] = Field(description="Collections.")
    budgets: BudgetsInForce | None = Field(description="Limits in force.")
    model: str = Field(description="Model in use; empty when answers are extractive.")


class AgentEvent(Event):
    """`agent`: an agent was chosen."""

    name: str = Field(description="Its name.")
    chosen_by: str = Field(description="`explicit`, `model`, `classified` (by rules) or `default`.")


class ThinkingEvent(Event):
    """`thinking`: progress, or what was done in a lesser way than asked and why."""

    phase: str = Field(
        description="`memory`, `tools` (which there are), `plan`, `tool` (what one is doing), `retrieve`, `reason` (what the model thinks), `answer`, `verify`, `load` (served in a lesser way), `resume`."
    )
    text: str = Field(description="Short text for a person.")
    degraded: Degradation | None = Field(description="Set when something was done in a lesser way than asked.")


class PlanEvent(Event):
    """`plan`: what will be searched, or how else an answer is looked for."""

    route: str = Field(
        description="`lexical`, `dense` or `hybrid`: a search. In a chat `tools`, `search`, `math`, `time` or `talk`."
    )
    queries: list[str] = Field(description="Queries.")
    reasons: list[str] = Field(
        description="Why this route, and why these queries, for a person. Of a research run, as is all that follows."
    )
    sub_queries: list[SubQuery] = Field(description="The queries with their purposes, in the order of `queries`.")
    must_phrases: list[str] = Field(description="Phrases that a passage must have: each is searched for by its words.")
    should_phrases: list[str] = Field(description="Names and identifiers that a good passage has some of.")
    filter: SearchFilter | None = Field(description="What every search keeps to. Absent: nothing.")
    planned_by: str = Field(description="Who made the plan: `rules` or `model`.")
    round: int = Field(description="Round that it is for, from 1; 0 where there are no rounds.")
    effort: str = Field(description="`low`, `medium` or `high`.")
    parts: list[str] = Field(description="What the answer must know: the parts of the question.")
    investigation: str = Field(
        description="The sub-investigation that searches: the part of the question that it looks at. Empty for the whole run."
    )


class RetrievalEvent(Event):
    """`retrieval`: what was found: the evidence set. Citation numbers are positions in it, from 1."""

    evidence: list[Evidence] = Field(description="Passages, best first.")
    degraded: list[Degradation] = Field(description="What failed and was worked around.")
    timings_ms: dict[str, float | None] = Field(description="Milliseconds by stage.")
    strategy: str = Field(description="Engines that were asked: `lexical`, `dense` or `hybrid`.")
    round: int = Field(
        description="Round that found it, from 1; 0 where there are no rounds. With rounds `evidence` is all that was found so far, ordered by number, and a passage keeps its number in all rounds."
    )
    dropped: list[DroppedPassage] = Field(description="Passages that were found and left out, at most 40.")
    searches: int = Field(description="Searches of this round.")
    investigation: str = Field(
        description="The sub-investigation that found it, as in Plan. Passages that it found first have the number 0 until the next `retrieval` of the whole run, which joins all investigations. Empty for the whole run."
    )


class TokenEvent(Event):
    """`token`: a piece of the answer: replace what you show from `offset` on by `text`."""

    text: str = Field(description="Text to append at offset.")
    offset: int = Field(
        description="Characters (code points) of the answer before this piece. A piece that starts below what was already shown replaces it from there: a new writer took the run over, or a fallback began."
    )


class VerificationEvent(Event):
    """`verification`: what was checked: a verdict a claim, and how well the whole is carried and answers."""

    sentences: list[SentenceVerdict] = Field(
        description="One verdict a claim, in order. A sentence that makes several claims has one for each."
    )
    citation_precision: float | None = Field(description="Share of citations that carry their claim, 0 to 1.")
    citation_coverage: float | None = Field(description="Share of claims carried by a citation, 0 to 1.")
    support_status: SupportStatus | None = Field(description="Judgement of the whole: whether its sources carry it.")
    answer_confidence: float | None = Field(
        description="Calibrated probability that it answers the question, 0 to 1. Null where that was not judged."
    )
    answer_status: AnswerStatus | None = Field(
        description="The same in a word: `likely` from 0.75 on, `unlikely` under 0.5."
    )
    checked_by: CheckedBy | None = Field(
        description="The judge of the claims; the least certain of them where there were several. Null where nothing was checked."
    )
    verify: str = Field(
        description="What becomes of a claim that is not supported: `mark`, `remove` or `off`; off: nothing was checked."
    )
    removed: int = Field(description="Sentences that were left out of the answer.")
    citation_recall: float | None = Field(
        description="Share of claims that are carried by the citations they were written with, 0 to 1 (citation recall: Gao et al., arXiv:2305.14627). citation_coverage counts also those for which another passage was found."
    )


class AnswerEvent(Event):
    """`answer`: the whole answer."""

    text: str = Field(description="Full text with citation marks [1], [2] …")
    citations: list[Citation] = Field(
        description="One quote a mark, numbered 1, 2, 3 … in order of appearance: the words that the mark stands behind come from it."
    )
    support_status: SupportStatus | None = Field(description="Judgement of the whole: whether its sources carry it.")
    method: str = Field(description="`model` or `extractive`.")
    block: dict[str, Any] | None = Field(description="A structured block, when the agent makes one.")
    answer_confidence: float | None = Field(
        description="Calibrated probability that a quoted text answers the question, 0 to 1; of a refusal, that an answer stands in the closest passages. Absent of written answers."
    )
    answer_status: AnswerStatus | None = Field(
        description="The same in a word: `likely` from 0.75 on, `unlikely` under 0.5."
    )
    closest: list[Citation] = Field(
        description="Of a refusal: the passages that came closest, best first, at most three, each with its closest words."
    )
    conflicts: list[Conflict] = Field(
        description="What the sources disagree about, of what was asked. The text says it, too."
    )
    coverage: Coverage | None = Field(
        description="What the evidence covers of the question; its numbers are those of citations. Of a research run."
    )
    ending: str = Field(
        description="How a research run ended: `answer`, `caveat` (with something left open), `conflict` (sources disagree), `gap` (something was not found) or `refusal`. Empty of other runs."
    )
    verification: Verification | None = Field(
        description="What was checked, claim by claim. Null where there was nothing to check."
    )
    artefacts: list[Artefact] = Field(description="What the agent has made besides the text.")
    function_calls: list[FunctionCall] = Field(
        description="Functions of the caller's that the model calls. The run ends with them: the caller makes the calls and asks anew."
    )


class UsageEvent(Event, Usage):
    """`usage`: what it cost, on every way out: of a cancelled or failed run too."""


class ErrorEvent(Event):
    """`error`: what broke. One without seq comes from the gateway, which has lost the stream, and says how to resume."""

    code: str = Field(description="gRPC status name, for example 'UNAVAILABLE'.")
    reason: str = Field(description="UPPER_SNAKE.")
    message: str = Field(description="For a person.")
    retryable: bool = Field(description="Whether asking again may help.")


class DoneEvent(Event):
    """`done`: the run has ended. Always the last event."""

    status: RunStatus | None = Field(description="How it ended.")


class ToolEvent(Event):
    """`tool`: a tool is called. Logged before the call is made."""

    call_id: str | None = Field(description="Call: the run's id, '/' and the step. The same after a take-over.")
    name: str = Field(description="Tool.")
    arguments: dict[str, Any] = Field(description="Arguments.")


class ToolResultEvent(Event):
    """`tool_result`: a tool has answered, or could not be called. With the reason IN_DOUBT nobody knows whether the call took effect, and it is not repeated."""

    call_id: str | None = Field(description="The call.")
    ok: bool = Field(description="Whether it worked.")
    summary: str = Field(description="What came out, shortened.")
    duration_ms: float | None = Field(description="How long it took, milliseconds.")
    error: ToolError | None = Field(description="Why it did not work; null when it did.")


class ApprovalEvent(Event):
    """`approval`: a person's decision is asked for (`pending`), or has come."""

    approval_id: str | None = Field(
        description="The question, unique within the tenant: `<run id>-<12 hex digits>`. POST /v1/approvals/{approval_id} decides it."
    )
    tool: str = Field(description="Tool that is to be called.")
    arguments: dict[str, Any] = Field(description="Arguments that it is to be called with.")
    arguments_hash: str = Field(
        description="SHA-256 of the arguments as JSON with sorted keys and no spaces, hex. A decision is about these arguments and no others."
    )
    may_decide: list[str] = Field(description="Subjects who may decide; empty means the subject whose run it is.")
    expires_at: Moment | None = Field(description="After this moment nobody can decide any more.")
    decision: ApprovalDecision | None = Field(description="What was decided.")
    decided_by: str = Field(description="Subject who decided; empty while pending, and when it expired.")
    is_tainted: bool = Field(
        description="Whether text that the user did not write (a passage, a tool's result, an earlier answer) was in the run's context. Then each call that changes something is asked about, also where the tool's policy does not ask."
    )
    tainted_arguments: list[str] = Field(
        description="Names of the arguments with words of such text that the user did not write."
    )


class ParkedEvent(Event):
    """`parked`: the run waits: nobody works on it, and its clock stands still. It goes on at the next event that is no `approval` and no `input`, such as `thinking` with the phase `resume`."""

    waits_for: str = Field(
        description="What it waits for: `approval`, a decision about each of `approval_ids`, or `input`, an answer of the user."
    )
    approval_ids: list[str] = Field(
        description="The questions that nobody has decided: Approval.approval_id, in the order in which they were asked."
    )
    until: Moment | None = Field(description="At this moment it goes on without.")


class CoverageEvent(Event):
    """`coverage`: what the evidence covers: each part of the question with its passages. The last one of a run is also in its answer."""

    parts: list[CoveragePart] = Field(description="In the order of the question.")
    share: float | None = Field(
        description="Mean of the parts' scores, 0 to 1. From 0.8 on nothing more is searched for."
    )
    round: int = Field(description="Round after which it was measured.")
    investigation: str = Field(
        description="The sub-investigation whose parts these are, as in Plan; empty for the whole question."
    )


class ClaimEvent(Event):
    """`claim`: a claim of the answer was checked, while the answer is written or behind it. A later one with the same index replaces it, and a Verification replaces all."""

    index: int = Field(description="Position among the claims of the answer so far, from 0.")
    verdict: SentenceVerdict | None = Field(
        description="The verdict. Its citations are numbers of passages of the evidence set; `start` and `end` are 0."
    )


class ArtefactEvent(Event):
    """`artefact`: something that an agent has made besides its text: a table, a quiz, a diagram. A later one of the same id replaces it. Each is also in the answer."""

    artefact_id: str | None = Field(description="Names it within its run, for example 'quiz1'.")
    kind: str = Field(
        description="What it is, for example `table`; docs/agents.md lists the kinds and the schema of each."
    )
    title: str = Field(description="One line for people.")
    body: dict[str, Any] | None = Field(description="What it says, by the schema of its kind.")
    items: list[ArtefactItem] = Field(description="Which citations carry which parts of the body.")
    citations: list[Citation] = Field(description="The cited passages, numbered 1, 2, 3 … within the artefact.")
    outline: str = Field(description="The same as plain text, for clients that do not draw the kind.")


class InputEvent(Event):
    """`input`: the run asks its user something (`pending`), or the answer has come. POST /v1/runs/{run_id}/input answers it."""

    question: str = Field(description="What is asked.")
    state: InputState | None = Field(description="What came of it.")
    text: str = Field(description="The answer; empty while there is none.")
    expires_at: Moment | None = Field(description="After this moment nobody can answer any more.")


class SafetyEvent(Event):
    """`safety`: something that is not safe was seen: a text gives orders to the model, or what the model wrote had to be held back."""

    place: str = Field(
        description="Where it stands: `question`, `passage`, `tool_result`, `answer`, `reasoning` (what the model thinks), or `arguments` (of a tool)."
    )
    kind: str = Field(
        description="`injection` (orders to the model), `exfiltration` (asks for its secrets, or sends data away), `abuse` (asks for harm), `canary` (the model was about to give its instructions away), or `address` (an address with data in it, or an image)."
    )
    rule: str = Field(
        description="The rule that found it, for example `override`, `role`, `leak`, `marker` or `hidden_text`."
    )
    action: str = Field(
        description="`flagged` (nothing was changed), `removed` (it was taken out), or `ended` (the text ends before it)."
    )
    passage: int = Field(description="Number of the passage; 0 where it is none.")
    start: int = Field(description="First character of it in the text of its place.")
    end: int = Field(description="Behind its last character; as `start` where it is not told.")
    text: str = Field(description="Its words, at most 200 characters. Of an address, the host. Empty of a canary.")


EVENT_MODELS: dict[str, type[Event]] = {
    "run": RunStartedEvent,
    "agent": AgentEvent,
    "thinking": ThinkingEvent,
    "plan": PlanEvent,
    "retrieval": RetrievalEvent,
    "token": TokenEvent,
    "verification": VerificationEvent,
    "answer": AnswerEvent,
    "usage": UsageEvent,
    "error": ErrorEvent,
    "done": DoneEvent,
    "tool": ToolEvent,
    "tool_result": ToolResultEvent,
    "approval": ApprovalEvent,
    "parked": ParkedEvent,
    "coverage": CoverageEvent,
    "claim": ClaimEvent,
    "artefact": ArtefactEvent,
    "input": InputEvent,
    "safety": SafetyEvent,
}
"""The data of each kind of event."""
