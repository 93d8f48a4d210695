"""The server of parsing children, started by its path with `python -I`: nothing is imported from the working directory, and no
environment is read. Arguments: the folder of this package's root, and the limits as JSON."""

import json
import sys

if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    from services.ingest.reading.child import server
    from services.ingest.reading.recognition import OcrLimits

    limits = json.loads(sys.argv[2])
    server.main(limits["memory_limit_bytes"], limits["processor_limit_s"], OcrLimits(**limits["ocr"]))
