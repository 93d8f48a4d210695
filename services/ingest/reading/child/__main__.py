"""The parsing child: reads requests on stdin, answers on stdout, until stdin closes. It is a process of its own because a native
parser may crash, hang or eat memory on a hostile file, and must then take nobody with it."""

import json
import os
import sys
from functools import cache
from pathlib import Path

from services.ingest.errors import DocumentRejected
from services.ingest.reading.child import wire
from services.ingest.reading.child.failures import too_deep, too_large, unreadable, where
from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.child.sandbox import allow_processor_time, confine
from services.ingest.reading.chunks.languages import LanguageDetector
from services.ingest.reading.chunks.tokens import EstimatedTokens, TokenCounter
from services.ingest.reading.recognition import OcrLimits, TextRecognizer


def main(memory_limit_bytes: int, processor_limit_s: float, ocr: OcrLimits) -> None:
    """Serves requests one after the other. `processor_limit_s` and `ocr` are for each."""
    # Tokenising must not take the cores that the embedder works on.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    confine(memory_limit_bytes)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints goes to stderr and not between the answers
    load_tokenizer = cache(_load_tokenizer)
    recognizer, detector = _recognizer(ocr.threads), _detector()

    def say(line: bytes) -> None:
        answers.write(line)
        answers.flush()

    for request_line in sys.stdin.buffer:
        request = wire.decode_request(request_line)
        allow_processor_time(processor_limit_s)
        try:
            document = prepare(
                request,
                lambda stage: say(wire.stage_line(stage)),
                load_tokenizer(request.tokenizer_path),
                recognizer,
                ocr,
                detector,
            )
        except DocumentRejected as error:
            say(wire.rejected_line(error.reason, error.message))
        except MemoryError:
            say(wire.rejected_line("PARSE_TOO_LARGE", too_large(request.name)))
            return  # a fresh process has all its memory
        except RecursionError:
            say(wire.rejected_line("TOO_DEEPLY_NESTED", too_deep(request.name)))
        except Exception as error:
            say(wire.rejected_line("PARSE_FAILED", unreadable(request.name), where(error)))
        else:
            answers.writelines(wire.result_lines(document))
            answers.flush()


def _load_tokenizer(path: str) -> TokenCounter:
    if not path:
        return EstimatedTokens()
    from services.ingest.adapters.tokenizer import ModelTokenizer  # noqa: PLC0415 - tens of megabytes, when needed

    return ModelTokenizer(Path(path))


def _recognizer(threads: int) -> TextRecognizer:
    from services.ingest.adapters.rapidocr import RapidOcr  # noqa: PLC0415 - as above; it loads its models when first used

    return RapidOcr(threads=threads)


def _detector() -> LanguageDetector:
    from services.ingest.adapters.fasttext_languages import FastTextLanguages  # noqa: PLC0415 - as above

    return FastTextLanguages()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), OcrLimits(**json.loads(sys.argv[3])))
