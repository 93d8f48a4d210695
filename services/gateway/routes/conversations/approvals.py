"""Approvals: what waits for a person, and deciding about it."""

from fastapi import APIRouter
from groundwork.common.v1 import common_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.schemas.conversations.approvals import Approval, ApprovalChoice, ApprovalList
from services.gateway.schemas.fields import ApprovalPath, PageSize, PageToken
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/approvals", tags=["approvals"], dependencies=[NEEDS_QUERY])


@router.get("", responses=problems())
async def list_approvals(services: Services, page_size: PageSize = 100, page_token: PageToken = "") -> ApprovalList:
    """Calls of tools that wait for your decision, and those of your runs that wait for somebody else's; administrators see all of
    the tenant. Oldest first, without those that have expired."""
    request = pb.ListApprovalsRequest(page=common_pb2.PageRequest(page_size=page_size, page_token=page_token))
    answer = await services.orchestrator.ListApprovals(request, timeout=services.settings.rpc_timeout_s)
    return ApprovalList(
        approvals=[_approval(each) for each in answer.approvals], next_page_token=answer.next_page_token or None
    )


@router.post("/{approval_id}", responses=problems(404, 412, 413, 415))
async def resolve_approval(approval_id: ApprovalPath, choice: ApprovalChoice, services: Services) -> Approval:
    """Allows or denies a call, and lets its run go on, which takes a denied call for one that failed. Harmless when repeated. 404
    with reason `APPROVAL_NOT_FOUND`, also for another `arguments_hash` than that of the call; 412 with
    `APPROVAL_CLOSED` when it was decided otherwise (member `decision`), has expired, or its run has ended; 403 with
    `NOT_YOURS_TO_DECIDE` when others are to decide."""
    allow = choice.decision == "allow"
    request = pb.ResolveApprovalRequest(
        approval_id=approval_id,
        decision=pb.APPROVAL_DECISION_ALLOWED if allow else pb.APPROVAL_DECISION_DENIED,
        arguments_hash=choice.arguments_hash,
    )
    answer = await services.orchestrator.ResolveApproval(request, timeout=services.settings.rpc_timeout_s)
    return _approval(answer.approval)


def _approval(message: pb.PendingApproval) -> Approval:
    return Approval.model_validate({**encode(message), **encode(message.approval)})
