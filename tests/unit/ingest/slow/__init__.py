"""Files that are made to be slow, of any size, by what is in them."""

from tests.unit.ingest.slow.case import SlowFile
from tests.unit.ingest.slow.markup import MARKUP
from tests.unit.ingest.slow.office import OFFICE
from tests.unit.ingest.slow.pdf import PDFS
from tests.unit.ingest.slow.texts import TEXTS
from tests.unit.ingest.slow.workbooks import WORKBOOKS

SLOW_FILES: dict[str, SlowFile] = {**PDFS, **WORKBOOKS, **OFFICE, **MARKUP, **TEXTS}
