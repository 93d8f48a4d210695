"""Which lane an upload waits in, where its sender does not say: a person sends a few files, a script sends thousands."""

from collections import OrderedDict, deque
from collections.abc import Callable

from kit.access.principal import Principal
from services.ingest.documents.models import Lane

_WINDOW_S = 60.0
_COUNTED_MAX = 10_000


class LaneChoice:
    """Counts each caller's uploads into a collection in the last minute. `clock` gives seconds."""

    def __init__(self, bulk_after: int, clock: Callable[[], float]) -> None:
        self._bulk_after = bulk_after
        self._clock = clock
        self._uploads: OrderedDict[tuple[str, str, str], deque[float]] = OrderedDict()
        """Times by tenant, subject and collection, those heard of last at the end."""

    def choose(self, caller: Principal, collection_id: str, wanted: Lane | None) -> Lane:
        """The wanted lane. Where none is wanted, bulk once the caller has sent the collection more than `bulk_after` such uploads
        within a minute."""
        if wanted is not None:
            return wanted
        now, key = self._clock(), (caller.tenant_id, caller.subject, collection_id)
        times = self._uploads.setdefault(key, deque(maxlen=self._bulk_after + 1))
        self._uploads.move_to_end(key)
        if len(self._uploads) > _COUNTED_MAX:
            self._uploads.popitem(last=False)
        times.append(now)
        return Lane.BULK if len(times) > self._bulk_after and now - times[0] < _WINDOW_S else Lane.INTERACTIVE
