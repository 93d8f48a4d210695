"""Those who use the system meanwhile: they write, replace, delete and make documents anew, ask, and try again what was not
answered, as good clients do."""

import json
import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import httpx

from chaos.ledger import Answer, Ledger

_TIMEOUT_S = 30.0
_PAUSE_S = 0.2
_LETTERS = "bcdfghjkmp"


class Client(ABC):
    """One user in a thread of their own."""

    def __init__(
        self, url: str, collection_id: str, number: int, seed: int, ledger: Ledger, pause_s: float = _PAUSE_S
    ) -> None:
        """`pause_s`: longest time between two acts."""
        self._url = url
        self._collection_id = collection_id
        self._number = number
        self._rng = random.Random(seed * 1000 + number)
        self._ledger = ledger
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"client-{number}")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Lets the request in hand end, answered or given up."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with httpx.Client(base_url=self._url, timeout=_TIMEOUT_S, trust_env=False) as http:
            while not self._stop.is_set():
                self._act(http)
                self._stop.wait(self._rng.uniform(0.0, self._pause_s))

    @abstractmethod
    def _act(self, http: httpx.Client) -> None:
        """Does one thing that this user does."""

    def _until_answered(self, request: Callable[[], httpx.Response], *good: int) -> httpx.Response | None:
        """Sends a request again and again until it is answered well; None when the campaign ends before."""
        while True:
            try:
                response = request()
                if response.status_code in good:
                    return response
            except httpx.HTTPError:
                pass
            if self._stop.wait(_PAUSE_S):
                return None


class Writer(Client):
    """Writes documents under names of its own."""

    def __init__(self, url: str, collection_id: str, number: int, seed: int, ledger: Ledger, pause_s: float) -> None:
        super().__init__(url, collection_id, number, seed, ledger, pause_s)
        self._names: list[str] = []
        self._count = 0

    def _act(self, http: httpx.Client) -> None:
        kind = self._rng.choices(("new", "again", "delete"), (5, 3, 2))[0]
        if kind == "new" or not self._names:
            self._names.append(f"client-{self._number}-{len(self._names)}.txt")
            self._write(http, self._names[-1])
        elif kind == "again":  # a new version, or, if it was deleted, a new document of the old name
            self._write(http, self._rng.choice(self._names))
        else:
            self._delete(http, self._rng.choice(self._names))

    def _write(self, http: httpx.Client, name: str) -> None:
        self._count += 1
        word = unique_word(self._number, self._count)
        promise = self._ledger.promise(name)
        promise.begin(word)
        self._ledger.count(sent=1)
        content = _text(word, self._rng)
        path = f"/v1/collections/{self._collection_id}/documents"
        response = self._until_answered(lambda: http.post(path, files={"file": (name, content)}), 202)
        if response is not None:
            promise.answered(word, response.json()["document"]["id"])
            self._ledger.count(acknowledged=1)

    def _delete(self, http: httpx.Client, name: str) -> None:
        promise = self._ledger.promise(name)
        if not promise.document_id:
            return
        promise.begin(None)
        self._ledger.count(sent=1)
        path = f"/v1/documents/{promise.document_id}"
        if self._until_answered(lambda: http.delete(path), 204, 404) is not None:
            promise.answered(None)
            self._ledger.count(acknowledged=1)


class Asker(Client):
    """Asks one question after the other and reads each answer to its end, over broken connections."""

    def _act(self, http: httpx.Client) -> None:
        question = f"Where does the mooring {unique_word(self._rng.randrange(3), self._rng.randrange(1, 20))} lie?"
        body = {"question": question, "collection_ids": [self._collection_id]}
        answer: Answer | None = None
        try:
            for seq, kind, data in events(http, "POST", "/v1/qa", json_body=body):
                if answer is None:
                    answer = Answer(str(data["run_id"]))
                    self._ledger.count(questions=1)
                answer.see(seq, kind, data)
        except httpx.HTTPError:
            pass
        if answer is None:
            return  # nobody promised anything
        self._ledger.add(answer)
        while answer.seen[-1][1] != "done":
            if self._stop.wait(_PAUSE_S) or not self._read_on(http, answer):
                return

    def _read_on(self, http: httpx.Client, answer: Answer) -> bool:
        """Reads behind the last event seen. False when there is no such run: forgotten or lost, which the verdict tells apart."""
        path, last = f"/v1/runs/{answer.run_id}/events", str(answer.seen[-1][0])
        try:
            for seq, kind, data in events(http, "GET", path, last_event_id=last):
                answer.see(seq, kind, data)
        except httpx.HTTPStatusError as error:
            return error.response.status_code != 404
        except httpx.HTTPError:
            pass
        return True


def unique_word(client: int, number: int) -> str:
    """A word that no other document has, that no stemmer touches and that no tokenizer takes for a number."""
    return "zq" + "".join(_LETTERS[int(digit)] for digit in f"{client:02d}{number:05d}") + "ux"


def _text(word: str, rng: random.Random) -> bytes:
    """Mostly one chunk, sometimes twenty: work of different length in every stage."""
    sentences = rng.choice([3, 3, 3, 10, 200])
    more = " ".join(f"Buoy {index} of fairway {word} was painted in spring." for index in range(sentences))
    return f"The mooring {word} lies in the harbour of Emden.\n\n{more}".encode()


def events(
    http: httpx.Client, method: str, path: str, *, json_body: object = None, last_event_id: str = ""
) -> Iterator[tuple[int, str, dict[str, object]]]:
    """Numbers, kinds and data of a stream's events. Raises HTTPError when it breaks or is refused."""
    headers = {"accept": "text/event-stream", **({"last-event-id": last_event_id} if last_event_id else {})}
    with http.stream(method, path, json=json_body, headers=headers) as response:
        response.raise_for_status()
        fields: dict[str, str] = {}
        for line in response.iter_lines():
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
            elif not line and "id" in fields:
                yield int(fields["id"]), fields["event"], json.loads(fields["data"])
                fields = {}
