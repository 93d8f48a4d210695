"""The edges of the orchestrator, gRPC and the queue of what is to be forgotten: decode, call, encode."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import structlog
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc as rpc
from pydantic import SecretStr

from kit.access.principal import ADMIN, OPERATOR, current_principal
from kit.errors import GroundworkError
from kit.jetstream import Job
from kit.limits.store import LimitRules
from kit.llm.brought import BroughtModel
from kit.llm.provider_watch import ProviderWatch
from kit.llm.providers import Choice
from kit.llm.sampling import Sampling
from kit.llm.switching import ModelSwitch
from kit.network.local_models import use_local_models
from kit.records import UNREADABLE, set_aside
from kit.shared_state import FORGET
from kit.stores.forgetting import decode
from services.orchestrator.adapters import limit_codec, model_codec
from services.orchestrator.adapters.codec import (
    budgets_from_proto,
    enum_from_number,
    enum_number,
    event_for_client,
    fill,
    read,
)
from services.orchestrator.adapters.jetstream.agent_switches import AgentSwitches
from services.orchestrator.adapters.services.facts import decode_turn
from services.orchestrator.adapters.services.tools import GrpcTools
from services.orchestrator.agent import Agent
from services.orchestrator.errors import InvalidRequest, RunNotFound
from services.orchestrator.limits.reservations import Reservations
from services.orchestrator.log.events import RunMode
from services.orchestrator.models import (
    BroughtName,
    Function,
    HistoryMessage,
    ResearchOptions,
    RunKey,
    RunRecord,
    RunRequest,
    StoredQuiz,
    ToolSelection,
)
from services.orchestrator.modes.mode import Mode
from services.orchestrator.modes.serving import Modes, listed
from services.orchestrator.quizzes.answers import QuestionState, QuizAnswers, states_of
from services.orchestrator.remembering.learning import Learning
from services.orchestrator.runs.approvals import PendingApproval
from services.orchestrator.runs.forgetting import Forgetting, RunDeletion
from services.orchestrator.runs.requests import check_tools
from services.orchestrator.runs.service import Runs
from services.orchestrator.runs.tally import GroupBy, Period, Row, Tally, account
from services.orchestrator.state import LEARN

_log = structlog.get_logger()
_UNKNOWN_COMES_BACK_AFTER_S = 600.0

_RUN_ID = re.compile(r"[0-9a-f]{32}")


class OrchestratorServicer(rpc.OrchestratorServiceServicer):
    """OrchestratorService over Runs."""

    def __init__(
        self,
        runs: Runs,
        deletion: RunDeletion,
        switch: ModelSwitch,
        watch: ProviderWatch,
        tally: Tally,
        tools: GrpcTools,
        switches: AgentSwitches,
        quizzes: QuizAnswers,
        limits: LimitRules,
        reservations: Reservations,
    ) -> None:
        self._quizzes = quizzes
        self._limits = limits
        self._reservations = reservations
        self._switches = switches
        self._runs = runs
        self._deletion = deletion
        self._switch = switch
        self._watch = watch
        self._tally = tally
        self._tools = tools

    async def StartRun(self, request: pb.StartRunRequest, context: Any) -> AsyncIterator[pb.StartRunResponse]:
        principal, key, asked = current_principal(), request.idempotency_key, _request(request, self._runs.modes)
        await self._check_tools(asked)
        _, events = await self._runs.start(principal, asked, key, _brought(request))
        async with aclosing(events) as run:  # type: ignore[type-var] # a generator in fact
            async for event in run:
                yield pb.StartRunResponse(event=event_for_client(event))

    async def _check_tools(self, request: RunRequest) -> None:
        if request.tools is None or not request.tools.names:
            return
        try:
            offered = await self._tools.offered()
        except GroundworkError as error:  # the run goes on without tools, and says so
            _log.warning("tools_not_listed", reason=error.reason, error=error.message)
            return
        check_tools(request, self._runs.modes.named(request.mode), offered)

    async def AttachRun(self, request: pb.AttachRunRequest, context: Any) -> AsyncIterator[pb.AttachRunResponse]:
        key = (await self._visible(request.run_id)).key
        async with aclosing(self._runs.attach(key, request.after_seq)) as run:
            async for event in run:
                yield pb.AttachRunResponse(event=event_for_client(event))

    async def CancelRun(self, request: pb.CancelRunRequest, context: Any) -> pb.CancelRunResponse:
        record = await self._visible(request.run_id)
        return pb.CancelRunResponse(run=_run(await self._runs.cancel(record.key)))

    async def DeleteRun(self, request: pb.DeleteRunRequest, context: Any) -> pb.DeleteRunResponse:
        key = _key(request.run_id)
        # Somebody else's is answered like one that is gone, which may be deleted again.
        if await self._runs.may_delete(current_principal(), key):
            await self._deletion.delete(key)
        return pb.DeleteRunResponse()

    async def GetRun(self, request: pb.GetRunRequest, context: Any) -> pb.GetRunResponse:
        record = await self._runs.as_followed(current_principal(), _key(request.run_id))
        run = _run(record)
        for message in record.request.said:
            fill(run.input.add(), message)
        return pb.GetRunResponse(run=run)

    async def ListRuns(self, request: pb.ListRunsRequest, context: Any) -> pb.ListRunsResponse:
        page = await self._runs.list_visible(current_principal(), request.page.page_size, request.page.page_token)
        return pb.ListRunsResponse(runs=[_run(record) for record in page.runs], next_page_token=page.next_page_token)

    async def _visible(self, run_id: str) -> RunRecord:
        return await self._runs.visible(current_principal(), _key(run_id))

    async def ListApprovals(self, request: pb.ListApprovalsRequest, context: Any) -> pb.ListApprovalsResponse:
        page = await self._runs.approvals.list(current_principal(), request.page.page_size, request.page.page_token)
        return pb.ListApprovalsResponse(
            approvals=[_question(each) for each in page.questions], next_page_token=page.next_page_token
        )

    async def ResolveApproval(self, request: pb.ResolveApprovalRequest, context: Any) -> pb.ResolveApprovalResponse:
        if request.decision not in (pb.APPROVAL_DECISION_ALLOWED, pb.APPROVAL_DECISION_DENIED):
            raise InvalidRequest("say whether the call is allowed or denied", field="decision")
        decided = await self._runs.approvals.resolve(
            current_principal(),
            request.approval_id,
            request.arguments_hash,
            allowed=request.decision == pb.APPROVAL_DECISION_ALLOWED,
        )
        return pb.ResolveApprovalResponse(approval=_question(decided))

    async def AnswerInput(self, request: pb.AnswerInputRequest, context: Any) -> pb.AnswerInputResponse:
        record = await self._visible(request.run_id)
        answered = await self._runs.inputs.answer(current_principal(), record, request.text)
        response = pb.AnswerInputResponse()
        fill(response.input, answered)
        return response

    async def ListTools(self, request: pb.ListToolsRequest, context: Any) -> pb.ListToolsResponse:
        return pb.ListToolsResponse(tools=await self._tools.messages())

    async def GetQuiz(self, request: pb.GetQuizRequest, context: Any) -> pb.GetQuizResponse:
        stored = await self._quizzes.get(request.thread_id, request.quiz_id)
        return pb.GetQuizResponse(quiz=_quiz(request.quiz_id, stored))

    async def GradeQuiz(self, request: pb.GradeQuizRequest, context: Any) -> pb.GradeQuizResponse:
        given = {each.question_id: each.given for each in request.answers}
        stored = await self._quizzes.grade(request.thread_id, request.quiz_id, given)
        return pb.GradeQuizResponse(quiz=_quiz(request.quiz_id, stored))

    async def ListAgents(self, request: pb.ListAgentsRequest, context: Any) -> pb.ListAgentsResponse:
        modes = self._runs.modes
        takers = [mode.name.value for mode in modes.all if mode.takes_agents]
        return pb.ListAgentsResponse(
            agents=[_agent(each, takers, modes.agents.default.name) for each in modes.agents.all],
            modes=[_mode(each) for each in modes.all],
            switched_off=self._switched_off(),
        )

    async def SwitchAgent(self, request: pb.SwitchAgentRequest, context: Any) -> pb.SwitchAgentResponse:
        await self._switches.set(request.name, enabled=request.enabled, by=current_principal().subject)
        return pb.SwitchAgentResponse(switched_off=self._switched_off())

    def _switched_off(self) -> list[pb.SwitchedOffAgent]:
        found = []
        for name, each in sorted(self._switches.off.items()):
            message = pb.SwitchedOffAgent(name=name, by=each.by)
            message.at.FromDatetime(each.at)
            found.append(message)
        return found

    async def GetModels(self, request: pb.GetModelsRequest, context: Any) -> pb.GetModelsResponse:
        has_details = current_principal().may(OPERATOR)
        return model_codec.models_to_proto(self._switch, self._watch, has_details=has_details)

    async def SetModel(self, request: pb.SetModelRequest, context: Any) -> pb.SetModelResponse:
        operation = model_codec.operation_of(request.operation)
        if request.HasField("model"):
            choice = Choice(request.model.provider, request.model.model)
            await self._switch.set(operation, choice, by=current_principal().subject, force=request.force)
        else:
            await self._switch.reset(operation)
        return pb.SetModelResponse(operation=model_codec.operation_to_proto(self._switch.operation(operation)))

    async def GetUsage(self, request: pb.GetUsageRequest, context: Any) -> pb.GetUsageResponse:
        principal = current_principal()
        subject = "" if request.all_subjects else request.subject or principal.subject
        if subject != principal.subject:
            principal.require(ADMIN)
        period = Period.read(request.since, request.until, datetime.now(UTC).date())
        found = await account(self._tally, principal.tenant_id, subject, period, _group_by(request.group_by))
        return pb.GetUsageResponse(rows=[_row(each) for each in found.rows], total=_row(found.total))

    async def GetLimits(self, request: pb.GetLimitsRequest, context: Any) -> pb.GetLimitsResponse:
        principal = current_principal()
        states = await self._reservations.states(principal)
        return pb.GetLimitsResponse(limits=[limit_codec.state_to_proto(each, principal) for each in states])

    async def ListLimitRules(self, request: pb.ListLimitRulesRequest, context: Any) -> pb.ListLimitRulesResponse:
        principal = current_principal()
        rules = self._limits.rules.listed("" if principal.may(OPERATOR) else principal.tenant_id)
        return pb.ListLimitRulesResponse(rules=[limit_codec.rule_to_proto(*each) for each in rules.items()])

    async def SetLimitRule(self, request: pb.SetLimitRuleRequest, context: Any) -> pb.SetLimitRuleResponse:
        whose = limit_codec.whose_of(request.whose, current_principal())
        limits = limit_codec.limits_of(request.limits)
        await self._limits.set(whose, limits)
        return pb.SetLimitRuleResponse(rule=limit_codec.rule_to_proto(whose, limits))


def _group_by(name: str) -> GroupBy:
    try:
        return GroupBy(name or "day")
    except ValueError:
        known = ", ".join(each.value for each in GroupBy)
        raise InvalidRequest(f"costs are not grouped by {name[:40]!r}; use {known}", field="group_by") from None


def _row(row: Row) -> pb.UsageRow:
    return pb.UsageRow(
        key=row.key,
        runs=row.runs,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        cost_usd=row.cost_usd,
    )


def _agent(agent: Agent, modes: Sequence[str], default: str) -> pb.Agent:
    return pb.Agent(
        name=agent.name,
        description=agent.description,
        modes=modes,
        is_default=agent.name == default,
        makes_block=agent.output is not None,
        tools=agent.tools,
    )


def _mode(mode: Mode) -> pb.Mode:
    return pb.Mode(
        name=mode.name.value,
        description=mode.description,
        needs_collections=mode.needs_collections,
        takes_documents=mode.takes_documents,
        takes_tools=mode.takes_tools,
        takes_agents=mode.takes_agents,
    )


def _request(message: pb.StartRunRequest, modes: Modes) -> RunRequest:
    if message.mode == pb.RUN_MODE_UNSPECIFIED:
        raise InvalidRequest(f"no mode is named; use {listed(modes.all)}", field="mode")
    mode_descriptor = message.DESCRIPTOR.fields_by_name["mode"].enum_type
    return RunRequest(
        mode=enum_from_number(mode_descriptor, message.mode, RunMode),
        question=message.question,
        collection_ids=tuple(message.collection_ids),
        thread_id=message.thread_id,
        agent=message.agent,
        document_ids=tuple(message.document_ids),
        budgets=budgets_from_proto(message.budgets),
        top_k=message.top_k,
        model_credentials=BroughtName(message.model_credentials.model, message.model_credentials.preset)
        if message.HasField("model_credentials")
        else None,
        tools=ToolSelection(tuple(message.tools.names)) if message.HasField("tools") else None,
        memory=message.memory,
        research=read(message.research, ResearchOptions) if message.HasField("research") else None,
        verify=message.verify,
        history=tuple(read(each, HistoryMessage) for each in message.history),
        guard=message.guard,
        style=message.style,
        instructions=message.instructions,
        functions=tuple(read(each, Function) for each in message.functions),
        function_choice=message.function_choice,
        one_function_at_a_time=message.one_function_at_a_time,
        called=tuple(read(each, HistoryMessage) for each in message.called),
        answer_schema=message.answer_schema,
        sampling=read(message.sampling, Sampling) if message.HasField("sampling") else None,
        previous_run_id=_key(message.previous_run_id).run_id if message.previous_run_id else "",
    )


def _brought(message: pb.StartRunRequest) -> BroughtModel | None:
    if not message.HasField("model_credentials"):
        return None
    given = message.model_credentials
    return BroughtModel(given.base_url, SecretStr(given.api_key), given.model, given.preset)


def _key(run_id: str) -> RunKey:
    # A run id becomes part of a subject: what is not hex could reach into other subjects.
    if not _RUN_ID.fullmatch(run_id):
        raise RunNotFound(f"{run_id[:80]!r} is not a run id; it is 32 hex characters", run_id=run_id[:80])
    return RunKey(current_principal().tenant_id, run_id)


def _question(question: PendingApproval) -> pb.PendingApproval:
    message = pb.PendingApproval(run_id=question.run_id, subject=question.subject, yours_to_decide=question.yours)
    fill(message.approval, question.approval)
    return message


def _quiz(quiz_id: str, stored: StoredQuiz) -> pb.Quiz:
    """The quiz without what gives away the answers of questions that are not answered."""
    states = states_of(stored)
    answered = [each for each in states if each.answer is not None]
    return pb.Quiz(
        quiz_id=quiz_id,
        title=stored.quiz.title,
        questions=[_question_of_quiz(each) for each in states],
        answered=len(answered),
        right=sum(each.answer is not None and each.answer.is_right for each in answered),
    )


def _question_of_quiz(state: QuestionState) -> pb.QuizQuestion:
    question, answer = state.question, state.answer
    message = pb.QuizQuestion(
        question_id=state.question_id,
        kind=question.kind.value,
        difficulty=question.difficulty.value,
        question=question.text,
        options=question.options,
    )
    if answer is not None:
        message.result.given, message.result.is_right = answer.given, answer.is_right
        message.result.graded_by = answer.graded_by
        message.result.answer, message.result.explanation = question.answer, question.explanation
        for citation in state.citations:
            fill(message.result.citations.add(), citation)
    return message


def _run(record: RunRecord) -> pb.Run:
    run = pb.Run(
        run_id=record.key.run_id,
        question=record.request.question,
        thread_id=record.request.thread_id,
        collection_ids=record.request.collection_ids,
        subject=record.subject,
        follows_schema=bool(record.request.answer_schema),
    )
    run.mode = enum_number(pb.RunMode.DESCRIPTOR, record.request.mode)  # type: ignore[assignment]
    run.status = enum_number(pb.RunStatus.DESCRIPTOR, record.status)  # type: ignore[assignment]
    run.created_at.FromDatetime(record.created_at)
    if record.finished_at is not None:
        run.finished_at.FromDatetime(record.finished_at)
    if record.forgotten_at is not None:
        run.forgotten_at.FromDatetime(record.forgotten_at)
    for part, message in (
        (record.outcome.answer, run.answer),
        (record.outcome.usage, run.usage),
        (record.outcome.error, run.error),
    ):
        if part is not None:
            message.SetInParent()
            fill(message, part)
    return run


class LearningHandler:
    """The consumer of the queue LEARN."""

    def __init__(self, learning: Learning) -> None:
        self._learning = learning

    async def handle(self, job: Job) -> float | None:
        """Comes back after the seconds returned."""
        try:
            turn = decode_turn(job)
        except UNREADABLE as error:
            set_aside(LEARN.stream, job.job_id, error)
            return _UNKNOWN_COMES_BACK_AFTER_S  # a newer version's, perhaps
        with structlog.contextvars.bound_contextvars(run_id=turn.run_id), use_local_models(turn.local_models_only):
            await self._learning.learn(turn)
        return None


class ForgetHandler:
    """The consumer of the queue FORGET."""

    def __init__(self, forgetting: Forgetting) -> None:
        self._forgetting = forgetting

    async def handle(self, job: Job) -> float | None:
        """What is left of a request comes back after the seconds returned."""
        try:
            request = decode(job)
        except UNREADABLE as error:
            # A newer version's, perhaps: it waits for an orchestrator that knows it.
            set_aside(FORGET.stream, job.job_id, error)
            return _UNKNOWN_COMES_BACK_AFTER_S
        return await self._forgetting.forget(job.principal.tenant_id, request)
