"""Pages of listings that are ordered by time, newest first. A token says after which item the next page begins, so that items which
come and go meanwhile neither repeat nor skip others."""

import base64
import binascii
import json
from datetime import datetime

from services.ingest.errors import BadPageToken

_DEFAULT_PAGE, _MAX_PAGE = 100, 1000


def page_length(page_size: int) -> int:
    """Items on a page; 0 asks for the default."""
    return min(page_size or _DEFAULT_PAGE, _MAX_PAGE)


def age(moment: datetime, item_id: str) -> tuple[str, str]:
    """What listings are ordered by."""
    return moment.isoformat(timespec="microseconds"), item_id


def encode_token(last: tuple[str, str]) -> str:
    """The token of the page after `last`."""
    return base64.urlsafe_b64encode(json.dumps(last).encode()).decode()


def decode_token(token: str) -> tuple[str, str]:
    """Raises BadPageToken."""
    try:
        moment, item_id = json.loads(base64.urlsafe_b64decode(token.encode()))
        datetime.fromisoformat(moment)
        return str(moment), str(item_id)
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadPageToken("the page token is not one of ours; start again without it") from error
