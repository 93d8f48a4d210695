"""Threads: conversations and their messages."""

import asyncio
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Query, Response
from groundwork.common.v1 import common_pb2
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2

from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Backends, Services
from services.gateway.encoding import encode
from services.gateway.models import Json
from services.gateway.reports.runs import DOCX, ENDINGS, MARKDOWN, MEDIA_TYPES
from services.gateway.reports.threads import Language, render_thread
from services.gateway.schemas.conversations.events import AnswerStatus, RunStatus, SupportStatus
from services.gateway.schemas.conversations.quizzes import GivenAnswers, Quiz
from services.gateway.schemas.conversations.runs import (
    NewThread,
    Thread,
    ThreadList,
    ThreadTitle,
    ThreadWithMessages,
)
from services.gateway.schemas.fields import (
    DIGITS,
    TRUE_OR_FALSE,
    IdempotencyKey,
    PageSize,
    PageToken,
    QuizPath,
    ThreadPath,
)
from services.gateway.schemas.problem import problems

_MESSAGES_MAX = 1000

router = APIRouter(prefix="/v1/threads", tags=["threads"], dependencies=[NEEDS_QUERY])


@router.get("", responses=problems())
async def list_threads(services: Services, page_size: PageSize = 100, page_token: PageToken = "") -> ThreadList:
    """Threads, last used first."""
    request = pb.ListThreadsRequest(page=common_pb2.PageRequest(page_size=page_size, page_token=page_token))
    answer = await services.memory.ListThreads(request, timeout=services.settings.rpc_timeout_s)
    return ThreadList(
        threads=[_thread(each) for each in answer.threads], next_page_token=answer.next_page_token or None
    )


@router.post("", status_code=201, responses=problems(409, 413, 415))
async def create_thread(
    services: Services, response: Response, new: NewThread | None = None, idempotency_key: IdempotencyKey = None
) -> Thread:
    """Makes a thread."""
    request = pb.CreateThreadRequest(title=new.title if new else "", idempotency_key=idempotency_key or "")
    answer = await services.memory.CreateThread(request, timeout=services.settings.rpc_timeout_s)
    thread = _thread(answer.thread)
    response.headers["Location"] = f"/v1/threads/{thread.id}"
    return thread


@router.get("/{thread_id}", responses=problems(404))
async def get_thread(
    thread_id: ThreadPath,
    services: Services,
    limit: Annotated[
        int, Query(ge=1, le=_MESSAGES_MAX, description="At most this many messages, the last ones."), DIGITS
    ] = 50,
) -> ThreadWithMessages:
    """A thread and its last messages, oldest first."""
    return await _fetched(thread_id, limit, services)


@router.get(
    "/{thread_id}/export",
    response_class=Response,
    responses={
        200: {"description": "The document.", "content": {MEDIA_TYPES[form]: {} for form in (MARKDOWN, DOCX)}},
        **problems(404),
    },
)
async def export_thread(
    thread_id: ThreadPath,
    services: Services,
    form: Annotated[
        Literal["markdown", "docx"], Query(alias="format", description="`markdown` or `docx`.")
    ] = "markdown",
    language: Annotated[
        Language, Query(description="Of the words that are not of the conversation, as “Sources”.")
    ] = "en",
) -> Response:
    """A conversation as a document to keep: questions, answers, and the passages that each answer cites. It has the last 1000
    messages, and says how many are left out."""
    thread = (await _fetched(thread_id, _MESSAGES_MAX, services)).model_dump(mode="json")
    document = await asyncio.to_thread(render_thread, thread, form, language)
    headers = {"Content-Disposition": f'attachment; filename="conversation-{thread_id}.{ENDINGS[form]}"'}
    return Response(document, media_type=MEDIA_TYPES[form], headers=headers)


async def _fetched(thread_id: str, limit: int, services: Backends) -> ThreadWithMessages:
    timeout_s = services.settings.rpc_timeout_s
    thread = await services.memory.GetThread(pb.GetThreadRequest(thread_id=thread_id), timeout=timeout_s)
    request = pb.GetHistoryRequest(thread_id=thread_id, limit=limit)
    history = await services.memory.GetHistory(request, timeout=timeout_s)
    messages = [_message(each) for each in history.messages]
    return ThreadWithMessages.model_validate({**encode(thread.thread), "messages": messages})


@router.patch("/{thread_id}", responses=problems(404, 413, 415))
async def rename_thread(thread_id: ThreadPath, title: ThreadTitle, services: Services) -> Thread:
    """Gives a thread another title."""
    request = pb.RenameThreadRequest(thread_id=thread_id, title=title.title)
    answer = await services.memory.RenameThread(request, timeout=services.settings.rpc_timeout_s)
    return _thread(answer.thread)


@router.delete("/{thread_id}", status_code=204, responses=problems())
async def delete_thread(
    thread_id: ThreadPath,
    services: Services,
    forget: Annotated[
        bool, TRUE_OR_FALSE, Query(description="Whether what was learnt of you in it is forgotten, too.")
    ] = False,
) -> None:
    """Removes a thread, its messages, and within a minute the runs of its questions. Harmless when repeated."""
    if forget:
        facts = pb.ForgetFactsRequest(thread_id=thread_id)
        await services.memory.ForgetFacts(facts, timeout=services.settings.rpc_timeout_s)
    request = pb.DeleteThreadRequest(thread_id=thread_id)
    await services.memory.DeleteThread(request, timeout=services.settings.rpc_timeout_s)


@router.get("/{thread_id}/quizzes/{quiz_id}", responses=problems(404))
async def get_quiz(thread_id: ThreadPath, quiz_id: QuizPath, services: Services) -> Quiz:
    """A quiz of a thread, as far as it is answered. Right answers are shown of questions that are answered."""
    request = orchestrator_pb2.GetQuizRequest(thread_id=thread_id, quiz_id=quiz_id)
    answer = await services.orchestrator.GetQuiz(request, timeout=services.settings.rpc_timeout_s)
    return Quiz.model_validate(encode(answer.quiz))


@router.post("/{thread_id}/quizzes/{quiz_id}/answers", responses=problems(404, 413, 415))
async def answer_quiz(thread_id: ThreadPath, quiz_id: QuizPath, given: GivenAnswers, services: Services) -> Quiz:
    """Grades answers and keeps them with the thread. Short answers may differ in case, accents, spelling and the way numbers are
    written; where there is a language model, in their words. A later answer takes the place of the one before."""
    answers = [orchestrator_pb2.GivenAnswer(question_id=each.question_id, given=each.given) for each in given.answers]
    request = orchestrator_pb2.GradeQuizRequest(thread_id=thread_id, quiz_id=quiz_id, answers=answers)
    answer = await services.orchestrator.GradeQuiz(request, timeout=services.settings.rpc_timeout_s)
    return Quiz.model_validate(encode(answer.quiz))


def _message(message: pb.Message) -> Json:
    body = encode(message)
    return body | {
        "method": body["method"] or None,
        "support_status": _known(body["support_status"], SupportStatus),
        "answer_status": _known(body["answer_status"], AnswerStatus),
        "run_status": _known(body["run_status"], RunStatus),
    }


def _known(word: str, words: Any) -> str | None:
    """`word`, which is kept as it was written; "unknown" for one that a newer version wrote, None for none."""
    return word if word in get_args(words) else "unknown" if word else None


def _thread(message: pb.Thread) -> Thread:
    return Thread.model_validate(encode(message))
