"""Whether vLLM answers: it completes one token, or is seen to complete others'. Exit code 0 if so.

`/health` says that the server's processes live, which they also do while the engine is stuck or the weights do not fit. Under
load a probe waits behind everybody else's prompts, and a server that works through them is not to lose its place for being busy.
"""

import json
import os
import sys
import urllib.error
import urllib.request

URL = os.environ.get("READY_URL", "http://127.0.0.1:8000")
TIMEOUT_S = float(os.environ.get("READY_TIMEOUT_S", "20"))
"""Below the probe's timeoutSeconds, so that progress can be looked at before the kubelet gives up."""
PROGRESS = ("vllm:generation_tokens_total", "vllm:prompt_tokens_total")
PAGE_TIMEOUT_S = 3


def tokens_done():
    """Tokens that were read and written since the start, for all models."""
    with urllib.request.urlopen(f"{URL}/metrics", timeout=PAGE_TIMEOUT_S) as page:  # noqa: S310 - this pod itself
        lines = page.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(PROGRESS))


def has_gone_on(before):
    """Whether tokens were done since."""
    try:
        return tokens_done() > before
    except (OSError, ValueError):
        return False


def complete():
    """Raises OSError when there is no answer, or none with a token."""
    body = {"model": os.environ["READY_MODEL"], "prompt": "1", "max_tokens": 1, "temperature": 0}
    request = urllib.request.Request(  # noqa: S310 - this pod itself
        f"{URL}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310 - this pod itself
        if not json.load(answer).get("choices"):
            raise OSError("the answer holds no completion")


def main():
    before = None
    try:
        before = tokens_done()
        complete()
    except urllib.error.HTTPError as error:
        sys.exit(f"vLLM answered {error.code}: {error.read(300).decode(errors='replace')}")
    except (OSError, ValueError) as error:
        if before is None or not has_gone_on(before):
            sys.exit(f"vLLM completed nothing within {TIMEOUT_S:g} s: {error}")


if __name__ == "__main__":
    main()
