"""Questions for a yes or no that a sentence answers by another number, and sentences that only have one."""

import pytest

from kit.language.questions import read_question
from services.orchestrator.answering.extractive import Passage
from services.orchestrator.answering.extractive.denials import tells_another_number
from services.orchestrator.answering.extractive.features import gather


@pytest.mark.parametrize(
    ("question", "text", "denies"),
    [
        ("Was the tower built in 2007?", "The tower was built in 1998.", True),
        ("Does the ticket cost 2 euros?", "The ticket costs 3 euros.", True),
        ("Is the pool open at 7?", "The pool is open at 9.", True),
        ("Was the tower built in 2007?", "The tower was built of 400 stones.", False),
        ("Was the tower built in 1998?", "The tower was built in 1998.", False),
        ("Is the pool open at 7?", "The pool is open on 5 days a week.", False),
        ("Does the train stop in Lund at 9?", "The train stops in Lund on platform 4.", False),
        ("Does room 214 have a projector?", "Each room has a projector and seats 40 people.", False),
        ("Can I bring 2 dogs?", "You can bring dogs for 10 euros a night.", False),
        ("Is the museum open on 24 December?", "The museum is open in December from 10 to 18.", False),
        ("When was the tower built in 2007?", "The tower was built in 1998.", False),
    ],
)
def test_another_number_denies_where_it_is_one_of_the_same(question: str, text: str, denies: bool) -> None:
    read = read_question(question)
    (candidate,) = gather(read, [Passage(1, text, "d1", "c1", 1.0, 0.6)]).candidates
    assert tells_another_number(read, candidate) is denies
