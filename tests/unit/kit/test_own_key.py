"""A service says when what it signs cannot be verified by others."""

import json

import pytest

from kit.access.keys import Jwk, KeySource, new_key, parse_public_keys, parse_signing_key, public_half
from kit.access.own_key import OwnKey


def _own_key(private: Jwk | None, public: list[Jwk]) -> OwnKey:
    signing = None
    if private is not None:
        signing = KeySource(parse_signing_key, value=json.dumps(private), setting="GROUNDWORK_AUTH_SIGNING_KEY")
    keys = KeySource(parse_public_keys, value=json.dumps({"keys": public}), setting="GROUNDWORK_AUTH_PUBLIC_KEYS")
    return OwnKey(signing, keys)


OWN, OTHER = new_key("gateway"), new_key("memory")


@pytest.mark.parametrize(
    ("private", "public", "said"),
    [
        pytest.param(OWN, [OWN, OTHER], "", id="its key is there"),
        pytest.param(OWN, [OTHER], "is not among the public keys", id="its key is not there"),
        pytest.param(
            OWN, [{**OTHER, "kid": OWN["kid"]}], "is another than the public one", id="another key has its id"
        ),
        pytest.param(None, [OTHER], "", id="it signs nothing"),
    ],
)
def test_a_service_says_when_others_cannot_verify_what_it_signs(
    private: Jwk | None, public: list[Jwk], said: str
) -> None:
    troubles = _own_key(private, [public_half(each, ["retriever/*"]) for each in public]).troubles()
    assert [trouble.part for trouble in troubles] == (["signing key"] if said else [])
    assert all(said in trouble.message and not trouble.stops_service for trouble in troubles)
