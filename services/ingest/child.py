"""The parsing child: reads requests on stdin, answers on stdout, until stdin closes. It is a process of its own because a native
parser may crash, hang or eat memory on a hostile file, and must then take nobody with it."""

import os
import resource
import sys
from functools import cache
from pathlib import Path

from services.ingest import wire
from services.ingest.errors import DocumentRejected
from services.ingest.prepare import prepare
from services.ingest.tokens import EstimatedTokens, TokenCounter


def main(memory_limit_bytes: int) -> None:
    """Serves requests one after the other."""
    # Tokenising must not take the cores that the embedder works on.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    resource.setrlimit(resource.RLIMIT_AS, (memory_limit_bytes, memory_limit_bytes))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints goes to stderr and not between the answers
    load_tokenizer = cache(_load_tokenizer)

    def say(line: bytes) -> None:
        answers.write(line)
        answers.flush()

    for request_line in sys.stdin.buffer:
        request = wire.decode_request(request_line)
        try:
            document = prepare(
                request, lambda stage: say(wire.stage_line(stage)), load_tokenizer(request.tokenizer_path)
            )
        except DocumentRejected as error:
            say(wire.rejected_line(error.reason, error.message))
        except MemoryError:
            say(wire.rejected_line("PARSE_TOO_LARGE", too_large(request.name)))
            return  # a fresh process has all its memory
        except Exception as error:
            say(
                wire.rejected_line(
                    "PARSE_FAILED", f"{request.name} cannot be read: {type(error).__name__}: {error}"[:500]
                )
            )
        else:
            answers.writelines(wire.result_lines(document))
            answers.flush()


def _load_tokenizer(path: str) -> TokenCounter:
    if not path:
        return EstimatedTokens()
    from services.ingest.adapters.tokenizer import ModelTokenizer  # noqa: PLC0415 - tens of megabytes, when needed

    return ModelTokenizer(Path(path))


def too_large(name: str) -> str:
    """What to tell a person whose file needs more memory than a parser may have."""
    return f"{name} needs more memory than one file may take when it is read; split it into smaller files"


if __name__ == "__main__":
    main(int(sys.argv[1]))
