"""What a campaign holds a system to."""

from chaos.ledger import Ledger


def test_request_without_an_answer_leaves_both_ends_open() -> None:
    promise = Ledger().promise("a.txt")
    promise.begin("old")
    promise.answered("old", "id-1")
    promise.begin("new")
    assert promise.may_hold == {"old", "new"}
    promise.answered("new", "id-1")
    assert promise.may_hold == {"new"}
    promise.begin(None)
    assert promise.may_hold == {"new", None}
    promise.answered(None)
    assert promise.may_hold == {None}
    assert promise.words == {"old", "new"}
