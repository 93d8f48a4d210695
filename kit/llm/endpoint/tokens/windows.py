"""Context windows that can be read: from the name of a model, and from the words of a server that refuses a prompt.

Sources: the providers' pages on their models, the model cards of open weights, and what servers sent when they refused. A server
may serve open weights with less than they can take, and cut what is longer without a word, so that no more than 32 768 is taken
for granted of them.
"""

import re

_LEAST = 256
"""A smaller number in a refusal is no window."""
_KILO = re.compile(r"(?<![\d.])(\d{1,4})k(?![a-z0-9])", re.IGNORECASE)
_MODELS = tuple(
    (re.compile(pattern, re.IGNORECASE), tokens)
    for pattern, tokens in (
        (r"gpt-4\.1", 1_047_576),
        (r"gpt-5", 400_000),
        (r"gpt-4o|gpt-4-turbo", 128_000),
        (r"gpt-4(?![\d.o])", 8_192),
        (r"gpt-3\.5", 16_385),
        (r"gpt-oss", 32_768),
        (r"(?:^|/)o1-mini", 128_000),
        (r"(?:^|/)o[134](?:$|-)", 200_000),
        (r"claude", 200_000),
        (r"gemini-(?:1\.5|[2-9])", 1_000_000),
        (r"grok", 131_072),
        (r"tiny-?llama|smollm(?!2|3)", 2_048),
        (r"llama-?3\.[1-9]|llama-?4", 32_768),
        (r"llama-?3|smollm[23]", 8_192),
        (r"llama-?2", 4_096),
        (r"mistral-7b.*v0\.1", 8_192),
        (r"mi[sx]tral|ministral|codestral|command-r", 32_768),
        (r"qwen-?(?:2|3)", 32_768),
        (r"deepseek-(?:v[23]|r1|chat|reasoner)", 32_768),
        (r"gemma-?3", 32_768),
        (r"gemma", 8_192),
        (r"phi-?4", 16_384),
        (r"phi-?3", 4_096),
    )
)
_NUMBER = r"(\d[\d,]*\d)"
_REFUSALS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"n_ctx['\"]?\s*[:=]\s*{_NUMBER}",  # llama.cpp
        rf"max_model_len\s*[=:]?\s*(?:of )?{_NUMBER}",  # vLLM
        rf"maximum model length[^\d]{{0,20}}{_NUMBER}",
        rf"{_NUMBER} maximum context length",  # Mistral
        rf"> {_NUMBER} maximum",  # Anthropic
        rf"maximum number of tokens allowed[^\d]{{0,5}}{_NUMBER}",  # Gemini
        rf"(?:context|prompt)[ _](?:length|size|window|limit)[^\d]{{0,40}}{_NUMBER}",  # OpenAI, vLLM, llama.cpp, SGLang, Grok
        rf"must be (?:<=|less than or equal to) {_NUMBER}",  # Text Generation Inference
    )
)


def window_of_model(name: str) -> int:
    """Tokens of prompt and answer together that a model of this name usually takes; 0 where the name says nothing."""
    if (said := _KILO.search(name)) is not None:
        return int(said[1]) * 1024
    return next((tokens for pattern, tokens in _MODELS if pattern.search(name)), 0)


def window_in_refusal(text: str) -> int:
    """The window that a server names when it refuses a prompt as too long; 0 where it names none."""
    for pattern in _REFUSALS:
        for found in pattern.finditer(text):
            if (tokens := int(found[1].replace(",", ""))) >= _LEAST:
                return tokens
    return 0
