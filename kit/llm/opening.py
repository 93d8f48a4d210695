"""Opens endpoints: those of the settings directly, those that users bring through the guard."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kit.llm.endpoint.endpoint import EndpointConfig, env_setting, open_endpoint
from kit.llm.endpoints import Address, OpenEndpoint
from kit.llm.errors import ModelRejected
from kit.llm.messages import LanguageModel
from kit.llm.providers import DEFAULT
from kit.llm.schema_calls import SchemaCalls
from kit.network.egress import AddressRefused, EgressGuard, NameNotFound, UrlRefused
from kit.network.guarded_http import guarded_transport

BROUGHT_SETTING: Callable[[str], str] = "`{}` of your model".format
"""What messages to the user who brought a model call what they sent."""


def endpoint_opener(guard: EgressGuard, *, stall_timeout_s: float, completion_timeout_s: float) -> OpenEndpoint:
    """Opens one model at a time, for as long as the block that it is opened for."""

    @asynccontextmanager
    async def open_one(address: Address) -> AsyncIterator[LanguageModel]:
        config = EndpointConfig(
            address.base_url,
            address.model,
            address.api_key.get_secret_value(),
            provider=address.provider,
            preset=address.preset,
            context_tokens=address.context_tokens,
            tokenizer_file=address.tokenizer_file,
            stall_timeout_s=stall_timeout_s,
            completion_timeout_s=completion_timeout_s,
            setting=BROUGHT_SETTING if address.is_brought else setting_of(address.provider),
        )
        transport = None
        if address.is_brought:
            await _check(guard, address.base_url)
            transport = guarded_transport(guard)
        async with open_endpoint(config, transport) as endpoint:
            yield SchemaCalls(endpoint) if address.makes_schema_calls else endpoint

    return open_one


def setting_of(provider: str) -> Callable[[str], str]:
    """Where a reader of a message finds what to put right."""
    return env_setting if provider == DEFAULT else f"GROUNDWORK_LLM_PROVIDERS[{provider}].{{}}".format


async def _check(guard: EgressGuard, url: str) -> None:
    try:
        await guard.check(url)
    except (UrlRefused, AddressRefused, NameNotFound) as error:
        raise ModelRejected(error.message, reason=error.reason) from error
