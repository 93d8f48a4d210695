"""What became of what users were promised: asked of the public API once the faults are over."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

from chaos.inquiries import documents_found_by, settled
from tests.cluster.facts import User
from tests.cluster.journal import Journal


@dataclass
class Account:
    """Each violation as a sentence."""

    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)

    @property
    def violations(self) -> list[str]:
        return [*self.lost, *self.doubled]


def settle(address: str, users: Sequence[User], journal: Journal) -> Account:
    """Every acknowledged upload is listed once, ready, and found by its word, once."""
    account = Account()
    for user in users:
        with httpx.Client(base_url=address, headers=user.headers, timeout=60.0, trust_env=False) as http:
            _settle_user(http, user, journal, account)
    return account


def _settle_user(http: httpx.Client, user: User, journal: Journal, account: Account) -> None:
    documents = settled(http, user.collection_id)
    status = {each["id"]: each["status"] for each in documents}
    names = Counter(each["name"] for each in documents)
    account.doubled += [f"{name} is listed {count} times" for name, count in names.items() if count > 1]
    for (name, word), ids in journal.uploads.items():
        if name != user.name or not ids:
            continue
        account.acknowledged += 1
        if len(ids) > 1:
            account.doubled.append(f"{word} was acknowledged as {sorted(ids)}")
        if not ids <= status.keys():
            account.lost.append(f"{word} is not listed")
        elif any(status[each] != "ready" for each in ids):
            account.lost.append(f"{word} is {[status[each] for each in ids]}")
        found = documents_found_by(http, user.collection_id, word)
        if found != ids:
            account.lost.append(f"{word} is found in {sorted(found)} and not in {sorted(ids)}")
