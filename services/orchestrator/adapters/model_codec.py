"""What is known of models, in the contract's words."""

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.llm import Operation
from kit.llm.provider_watch import ProviderWatch
from kit.llm.providers import Choice
from kit.llm.switching import ModelSwitch, OperationModels
from services.orchestrator.adapters.codec import enum_number
from services.orchestrator.errors import InvalidRequest

_NO_ANSWER = "does not answer now; ask the operator"
"""What callers other than operators read about a provider in trouble.

The details name addresses, settings and failures of other tenants."""


def models_to_proto(switch: ModelSwitch, watch: ProviderWatch, *, has_details: bool) -> pb.GetModelsResponse:
    """`has_details`: operators read in full what is wrong with a provider."""
    operations = [operation_to_proto(each) for each in switch.operations() if each.chain]
    return pb.GetModelsResponse(operations=operations, providers=_providers(switch, watch, has_details))


def operation_to_proto(found: OperationModels) -> pb.OperationModels:
    message = pb.OperationModels(operation=found.operation.value, chain=[_name(choice) for choice in found.chain])
    if found.set_model is not None:
        message.set = True
        message.set_by = found.set_model.set_by
        message.set_at.FromDatetime(found.set_model.set_at)
    return message


def operation_of(name: str) -> Operation:
    """Raises InvalidRequest."""
    try:
        return Operation(name)
    except ValueError:
        known = ", ".join(each.value for each in Operation)
        raise InvalidRequest(f"there is no operation {name[:80]!r}; there are {known}", field="operation") from None


def _name(choice: Choice) -> pb.ModelName:
    return pb.ModelName(provider=choice.provider, model=choice.model)


def _providers(switch: ModelSwitch, watch: ProviderWatch, has_details: bool) -> list[pb.ModelProvider]:
    found = []
    for name, provider in switch.models.catalog.providers.items():
        message = pb.ModelProvider(name=name, preset=provider.preset, models=provider.models)
        message.any_model = provider.any_model or not provider.models
        message.state = enum_number(pb.ProviderState.DESCRIPTOR, switch.models.state(name))  # type: ignore[assignment]
        problem = watch.problem(name)
        message.problem = problem if has_details or not problem else _NO_ANSWER
        found.append(message)
    return found
