"""Principal tokens: who may name whom, towards whom, for how long; and keys that change while everything runs."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from jwt.algorithms import OKPAlgorithm

from kit.access.key_folder import KeyFolder
from kit.access.keys import (
    Jwk,
    KeySource,
    PublicKey,
    SigningKey,
    new_key,
    parse_public_keys,
    parse_signing_key,
    public_half,
)
from kit.access.principal import Principal
from kit.access.tokens import TokenSigner, TokenVerifier
from kit.errors import FailedPrecondition, PermissionDenied, Unauthenticated
from kit.testing.harness import make_signer, make_verifier

ANN = Principal("acme", "ann", frozenset({"read"}))
SEARCH = "/groundwork.retriever.v1.RetrieverService/Search"
EMBED = "/groundwork.reranker.v1.RerankerService/Embed"
INDEX = "/groundwork.retriever.v1.RetrieverService/IndexChunks"
UPLOAD = "/groundwork.ingest.v1.IngestService/UploadDocument"
JOB = ("INGEST", "ingest.acme.doc.rev", "rev", b"data")


class Clock:
    """A clock that stands until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def forged(private: Jwk, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
    """A token with any claims, signed with a real key."""
    standard = {"aud": ["retriever"], "tenant": "acme", "sub": "ann", "scopes": ["read"], "exp": 4_000_000_000}
    key = OKPAlgorithm.from_jwk(private)
    headers = {"kid": private["kid"], **(header or {})}
    return jwt.encode({**standard, **claims}, key, algorithm="EdDSA", headers=headers)


def test_who_was_signed_is_who_is_verified() -> None:
    signer, verifier = make_signer(), make_verifier()
    for asker in (
        ANN,
        replace(ANN, groups=frozenset({"staff"}), key_id="1f" * 12),
        replace(ANN, key_id="2f" * 12),
    ):  # tokens are used again, never for another key
        principal = verifier.verify(signer.sign(asker, "retriever"), SEARCH)
        assert principal == asker
    assert principal.scopes == {"read"}


def test_a_token_is_good_for_the_rooms_that_it_names_alone() -> None:
    token = make_signer().sign(ANN, "retriever", "reranker")
    verifier = make_verifier()
    assert verifier.verify(token, SEARCH) == verifier.verify(token, EMBED) == ANN
    with pytest.raises(Unauthenticated, match=r"[Aa]udience"):
        verifier.verify(token, "/groundwork.ingest.v1.IngestService/DeleteDocument")


def test_a_key_signs_for_the_calls_beside_its_public_half_alone() -> None:
    private = new_key("worker")
    verifier = make_verifier(public_half(private, ["retriever/IndexChunks", "reranker/*"]))
    token = make_signer(private).sign(ANN, "retriever", "reranker")
    assert verifier.verify(token, INDEX) == verifier.verify(token, EMBED) == ANN
    with pytest.raises(PermissionDenied, match=r"worker-\w+ does not sign for retriever/Search"):
        verifier.verify(token, SEARCH)


def test_a_stranger_who_borrows_a_known_key_id_is_refused() -> None:
    known, stranger = new_key("gateway"), new_key("stranger")
    verifier = make_verifier(public_half(known, ["retriever/*"]))
    assert verifier.verify(forged(known), SEARCH) == ANN
    for token in (
        "",
        "a.b.c",
        forged(stranger),
        forged(stranger, {"kid": known["kid"]}),
        forged(known, {"kid": "gateway"}),
        jwt.encode({"aud": "retriever"}, "x" * 32, algorithm="HS256", headers={"kid": known["kid"]}),
        f"{base64.urlsafe_b64encode(json.dumps({'alg': 'none', 'kid': known['kid']}).encode()).decode()}.e30.",
    ):
        with pytest.raises(Unauthenticated):
            verifier.verify(token, SEARCH)


def test_a_public_key_is_no_shared_secret() -> None:
    """An HS256 token whose secret is the public key, which everybody knows (RFC 8725, 2.1)."""
    known = new_key("gateway")
    public = base64.urlsafe_b64decode(known["x"] + "=")
    token = jwt.encode(
        {"aud": "retriever", "tenant": "acme", "sub": "ann", "scopes": [], "exp": 4_000_000_000},
        public,
        algorithm="HS256",
        headers={"kid": known["kid"]},
    )
    with pytest.raises(Unauthenticated):
        make_verifier(public_half(known, ["retriever/*"])).verify(token, SEARCH)


@pytest.mark.parametrize("missing", ["exp", "aud", "sub", "tenant", "scopes"])
def test_a_token_without_one_of_its_claims_is_refused(missing: str) -> None:
    known = new_key("gateway")
    verifier = make_verifier(public_half(known, ["retriever/*"]))
    key = OKPAlgorithm.from_jwk(known)
    claims = jwt.decode(forged(known), options={"verify_signature": False})
    del claims[missing]
    with pytest.raises(Unauthenticated):
        verifier.verify(jwt.encode(claims, key, algorithm="EdDSA", headers={"kid": known["kid"]}), SEARCH)


WILD = ["*", ">", "acme.*", "acme.>", "", " ", "acme ", "acme\n", "Acme", "a/b", "a" * 65, "-a", "ä", "a\0"]


@pytest.mark.parametrize("tenant_id", WILD)
def test_a_tenant_outside_its_alphabet_is_neither_signed_nor_accepted(tenant_id: str) -> None:
    known = new_key("gateway")
    with pytest.raises(Unauthenticated, match="cannot be the tenant"):
        make_signer().sign(Principal(tenant_id, "ann"), "retriever")
    with pytest.raises(Unauthenticated, match="cannot be the tenant"):
        make_verifier(public_half(known, ["retriever/*"])).verify(forged(known, tenant=tenant_id), SEARCH)


@pytest.mark.parametrize("subject", ["*", ">", "", "ann smith", "ann\n", "ann/bob", "a" * 129, ".ann", "ann\0", "änn"])
def test_a_subject_outside_its_alphabet_is_neither_signed_nor_accepted(subject: str) -> None:
    known = new_key("gateway")
    with pytest.raises(Unauthenticated, match="cannot be the subject"):
        make_signer().sign(Principal("acme", subject), "retriever")
    with pytest.raises(Unauthenticated, match="cannot be the subject"):
        make_verifier(public_half(known, ["retriever/*"])).verify(forged(known, sub=subject), SEARCH)


@pytest.mark.parametrize(
    "subject", ["ann", "local-user", "ann.smith+rag@example.com", "auth0|62ab", "urn:user:7", "A_1"]
)
def test_subjects_of_identity_providers_are_accepted(subject: str) -> None:
    token = make_signer().sign(Principal("acme-2", subject), "retriever")
    assert make_verifier().verify(token, SEARCH).subject == subject


def test_an_expired_token_is_refused_also_when_it_was_seen_before() -> None:
    clock = Clock()
    token = make_signer(clock=clock).sign(ANN, "retriever")
    seen, fresh = make_verifier(clock=clock), make_verifier(clock=clock)
    clock.now = 299.0
    assert seen.verify(token, SEARCH) == seen.verify(token, SEARCH) == ANN
    clock.now = 300.0
    for verifier in (seen, fresh):
        with pytest.raises(Unauthenticated, match="expired"):
            verifier.verify(token, SEARCH)
    known = new_key("gateway")
    with pytest.raises(Unauthenticated):
        make_verifier(public_half(known, ["retriever/*"])).verify(forged(known, exp="never"), SEARCH)


def test_a_service_without_a_key_passes_on_the_callers_token_while_it_lives() -> None:
    clock = Clock()
    forwarder = TokenSigner(None, clock=clock)
    token = make_signer().sign(ANN, "retriever", "reranker")
    received = make_verifier().verify(token, SEARCH)
    assert forwarder.sign(received, "reranker") == token
    assert make_verifier().verify(forwarder.sign(received, "reranker"), EMBED) == ANN
    with pytest.raises(Unauthenticated, match="no signing key"):
        forwarder.sign(Principal("globex", "bob"), "reranker")
    clock.now = 5_000_000_000.0
    with pytest.raises(Unauthenticated, match="expired meanwhile"):
        forwarder.sign(received, "reranker")


def test_a_service_with_a_key_goes_on_when_the_callers_token_has_expired() -> None:
    """An upload may take an hour, and a run goes on without its caller."""
    clock = Clock()
    received = make_verifier(clock=clock).verify(make_signer(clock=clock).sign(ANN, "ingest"), UPLOAD)
    clock.now = 3600.0
    signer, verifier = make_signer(clock=clock), make_verifier(clock=clock)
    assert verifier.verify(signer.sign(received, "retriever"), SEARCH) == ANN
    assert verifier.verify_job(signer.sign_job(received, *JOB), *JOB) == ANN


def test_a_token_is_used_again_for_half_of_its_life() -> None:
    clock = Clock()
    signer = make_signer(clock=clock)
    first = signer.sign(ANN, "retriever")
    clock.now = 149.0
    assert signer.sign(ANN, "retriever") == first
    assert signer.sign(ANN, "memory") != first
    clock.now = 151.0
    assert signer.sign(ANN, "retriever") != first


@pytest.mark.parametrize("apart_s", [-120.0, 120.0])
def test_clocks_of_two_machines_may_differ_by_two_minutes(apart_s: float) -> None:
    here, there = Clock(), Clock()
    signer, verifier = make_signer(clock=here), make_verifier(clock=there)
    for now in (1_000.0, 1_149.0, 1_151.0):  # a new token, its last use, and the next one
        here.now, there.now = now, now + apart_s
        assert verifier.verify(signer.sign(ANN, "retriever"), SEARCH) == ANN


def test_a_jobs_token_outlives_every_call_and_belongs_to_that_job() -> None:
    token = make_signer(clock=lambda: 1_000_000.0).sign_job(ANN, *JOB)
    verifier = make_verifier()
    assert verifier.verify_job(token, *JOB) == ANN
    assert verifier.verify_job(token, *JOB).received is None, "it is not for passing on"
    for changed in (
        ("INGEST", "ingest.globex.doc.rev", "rev", b"data"),
        ("INGEST", "ingest.acme.doc.rev", "other", b"data"),
        ("INGEST", "ingest.acme.doc.rev", "rev", b"other"),
        ("INGEST", "ingest.acme.doc.re", "vrev", b"data"),
    ):
        with pytest.raises(Unauthenticated, match="another job"):
            verifier.verify_job(token, *changed)


def test_tokens_of_calls_and_of_jobs_do_not_stand_in_for_each_other() -> None:
    verifier = make_verifier()
    with pytest.raises(Unauthenticated):
        verifier.verify(make_signer().sign_job(ANN, *JOB), SEARCH)
    with pytest.raises(Unauthenticated):
        verifier.verify_job(make_signer().sign(ANN, "jobs"), *JOB)


def test_a_key_that_queues_no_jobs_cannot() -> None:
    private = new_key("gateway")
    verifier = make_verifier(public_half(private, ["retriever/*", "jobs/MEMORY"]))
    with pytest.raises(PermissionDenied, match="jobs/INGEST"):
        verifier.verify_job(make_signer(private).sign_job(ANN, *JOB), *JOB)
    with pytest.raises(FailedPrecondition, match="no signing key"):
        TokenSigner(None).sign_job(ANN, *JOB)


def test_a_key_signs_for_jobs_of_its_own_kind() -> None:
    private = new_key("memory")
    verifier = make_verifier(public_half(private, ["jobs/FORGET.thread"]))
    job = ("FORGET", "forget.acme.thread.t1", "acme.thread.t1", b"data")
    token = make_signer(private).sign_job(ANN, *job)
    assert verifier.verify_job(token, *job, kind="thread") == ANN
    with pytest.raises(PermissionDenied, match=r"jobs/FORGET\.document"):
        verifier.verify_job(token, *job, kind="document")
    with pytest.raises(PermissionDenied, match="jobs/FORGET"):
        verifier.verify_job(token, *job)


SIGNERS = {"gateway": ["retriever/*", "jobs/INGEST"], "worker": ["retriever/IndexChunks"]}


class System:
    """A signer and a verifier that run on the files of a folder, at an hour that the test sets."""

    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self.folder = KeyFolder(path, sleep=self._sleep)
        self.folder.ensure(SIGNERS)
        self.signer = TokenSigner(self._source(parse_signing_key, self.folder.signing_key_file("gateway")))
        self.public: KeySource[Mapping[str, PublicKey]] = self._source(parse_public_keys, self.folder.public_keys_file)
        self.verifier = TokenVerifier(self.public)

    def _sleep(self, seconds: float) -> None:
        self.clock.now += seconds

    def _source(self, parse: Any, path: Path) -> KeySource[Any]:
        return KeySource(parse, path=path, setting="TEST", clock=self.clock)

    def token(self) -> str:
        return self.signer.sign(ANN, "retriever")


def test_keys_change_while_tokens_are_made_and_verified(tmp_path: Path) -> None:
    system = System(tmp_path)
    before, job = system.token(), system.signer.sign_job(ANN, *JOB)
    assert system.verifier.verify(before, SEARCH) == ANN
    system.folder.rotate(SIGNERS, ["gateway"])
    after = system.token()
    assert jwt.get_unverified_header(after)["kid"] != jwt.get_unverified_header(before)["kid"]
    assert system.verifier.verify(after, SEARCH) == system.verifier.verify(before, SEARCH) == ANN
    assert system.verifier.verify_job(job, *JOB) == ANN, "what waits in a queue stays good"
    system.folder.rotate(SIGNERS, ["gateway"])
    system.clock.now += 1.0
    assert system.verifier.verify(after, SEARCH) == ANN
    with pytest.raises(Unauthenticated, match="no public key has the id"):
        system.verifier.verify(before, SEARCH)


def test_while_keys_change_nobody_is_refused_at_any_moment(tmp_path: Path) -> None:
    system = System(tmp_path)

    def step(seconds: float) -> None:
        """What happens while the command waits: services ask each other all the time."""
        for _ in range(int(seconds * 10)):
            system.clock.now += 0.1
            assert system.verifier.verify(system.token(), SEARCH) == ANN

    folder = KeyFolder(tmp_path, sleep=step)
    for forget in (False, True, True, False):
        for moment in (0.0, 0.3, 0.6):
            step(moment)
            folder.rotate(SIGNERS, ["gateway", "worker"])
            if forget:
                folder.forget(SIGNERS, ["gateway", "worker"])
            step(2.0)


def test_a_forgotten_key_is_void_although_its_token_was_verified_before(tmp_path: Path) -> None:
    system = System(tmp_path)
    stolen = system.token()
    assert system.verifier.verify(stolen, SEARCH) == ANN
    system.folder.rotate(SIGNERS, ["gateway"])
    assert system.verifier.verify(stolen, SEARCH) == ANN
    system.folder.forget(SIGNERS, ["gateway"])
    system.clock.now += 1.0
    with pytest.raises(Unauthenticated, match="no public key has the id"):
        system.verifier.verify(stolen, SEARCH)
    assert system.verifier.verify(system.token(), SEARCH) == ANN


def test_a_file_that_is_damaged_meanwhile_leaves_the_keys_in_force(tmp_path: Path) -> None:
    system = System(tmp_path)
    system.folder.public_keys_file.write_text("{")
    system.clock.now += 1.0
    assert system.verifier.verify(system.token(), SEARCH) == ANN


def test_a_key_folder_is_private_lasts_and_follows_the_list_of_signers(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path / "keys")
    folder.ensure(SIGNERS)
    before = {path.name: path.read_text() for path in folder.path.iterdir()}
    assert {path.stat().st_mode & 0o777 for path in folder.path.iterdir()} == {0o600}
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.ensure(SIGNERS)
    assert {path.name: path.read_text() for path in folder.path.iterdir()} == before
    KeyFolder(folder.path, sleep=lambda _: None).add("tool", ["retriever/*"])
    assert len(parse_public_keys(folder.public_keys_file.read_text())) == 3
    folder.ensure({**SIGNERS, "gateway": ["memory/*"]})
    keys = parse_public_keys(folder.public_keys_file.read_text())
    assert sorted(key.calls for key in keys.values()) == [{"memory/*"}, {"retriever/IndexChunks"}]


def test_a_key_that_a_power_cut_emptied_is_made_anew(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path)
    folder.ensure(SIGNERS)
    folder.signing_key_file("gateway").write_text("")
    folder.public_keys_file.write_text("")
    folder.ensure(SIGNERS)
    assert parse_signing_key(folder.signing_key_file("gateway").read_text()).kid in parse_public_keys(
        folder.public_keys_file.read_text()
    )


PRIVATE = new_key("gateway")
PUBLIC = public_half(PRIVATE, ["retriever/*"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Expecting value"),
        ("[]", "must be a JSON object"),
        ("{}", "must be a JSON Web Key Set"),
        ('{"keys": []}', "holds no key"),
        (json.dumps({"keys": [{**PUBLIC, "kid": ""}]}), "no id"),
        (json.dumps({"keys": [{**PUBLIC, "crv": "X25519"}]}), "not an Ed25519 key"),
        (json.dumps({"keys": [{**PUBLIC, "x": "AAAA"}]}), "damaged"),
        (json.dumps({"keys": [{**PUBLIC, "calls": None}]}), "does not list the calls"),
        (json.dumps({"keys": [{**PRIVATE, "calls": []}]}), "is a private one"),
    ],
)
def test_public_keys_that_cannot_be_used_are_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(FailedPrecondition, match=rf"GROUNDWORK_AUTH_PUBLIC_KEYS holds no usable key: .*{problem}"):
        KeySource(parse_public_keys, value=text, setting="GROUNDWORK_AUTH_PUBLIC_KEYS")


def test_a_signing_key_must_be_a_private_one(tmp_path: Path) -> None:
    def source(**where: Any) -> KeySource[SigningKey]:
        return KeySource(parse_signing_key, setting="GROUNDWORK_AUTH_SIGNING_KEY", **where)

    with pytest.raises(FailedPrecondition, match="no private part"):
        source(value=json.dumps(PUBLIC))
    with pytest.raises(
        FailedPrecondition, match=r"GROUNDWORK_AUTH_SIGNING_KEY_FILE=.*missing.json holds no usable key"
    ):
        source(path=tmp_path / "missing.json")


def test_keys_that_came_with_a_backup_are_good_for_jobs_alone_until_their_signers_next_rotation(tmp_path: Path) -> None:
    signers = {"ingest": ["jobs/FORGET", "retriever/DeleteDocument"], "gateway": ["ingest/*"]}
    folders = [KeyFolder(tmp_path / name, sleep=lambda _: None) for name in ("old", "new")]
    for folder in folders:
        folder.ensure(signers)
    old, new = folders
    old.rotate(signers, ["ingest"])  # jobs may have been signed with the key before
    brought = old.public_keys()
    assert all("d" not in key for key in brought)
    new.trust_for_jobs(signers, brought)
    new.trust_for_jobs(signers, brought)
    new.ensure(signers)
    new.rotate(signers, ["gateway"])
    keys = parse_public_keys(new.public_keys_file.read_text())
    theirs = [key for key in brought if key["kid"].startswith("ingest-")]
    assert len(theirs) == 2
    assert [keys[key["kid"]].calls for key in theirs] == [{"jobs/FORGET"}, {"jobs/FORGET"}]
    assert not [key["kid"] for key in brought if key["kid"].startswith("gateway-") and key["kid"] in keys]
    new.rotate(signers, ["ingest"])
    assert not {key["kid"] for key in brought} & set(parse_public_keys(new.public_keys_file.read_text()))


def test_keys_that_came_with_a_backup_can_be_forgotten(tmp_path: Path) -> None:
    signers = {"ingest": ["jobs/FORGET"]}
    old, new = (KeyFolder(tmp_path / name, sleep=lambda _: None) for name in ("old", "new"))
    old.ensure(signers)
    new.trust_for_jobs(signers, old.public_keys())
    new.forget(signers, ["ingest"])
    assert not {key["kid"] for key in old.public_keys()} & set(parse_public_keys(new.public_keys_file.read_text()))
