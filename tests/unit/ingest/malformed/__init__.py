"""Bad files, generated: what senders, networks, other programs and attackers make of documents. Deterministic, nothing on disk.

Each says what has to become of it: the reason with which it is refused, or words that must survive when it is read in part. Where
neither is given, both ends are right, and only how it ends (with a precise reason, within the limits) is looked at.
"""

from tests.unit.ingest.malformed import archives, contents, damage, markup, pdf, text
from tests.unit.ingest.malformed.case import BadFile

_FAMILIES = (
    damage.truncated,
    damage.flipped,
    damage.misnamed,
    damage.polyglots,
    archives.bombs,
    archives.slips,
    archives.encrypted,
    markup.xml_attacks,
    markup.nested,
    text.encodings,
    text.tables,
    text.mails,
    contents.telegram,
    contents.sheets,
    contents.office_oddities,
    contents.images,
    pdf.pdfs,
)


def bad_files() -> list[BadFile]:
    """All of them."""
    return [case for family in _FAMILIES for case in family()]
