"""Names of hosts that an operator allows."""

import pytest

from kit.errors import InvalidArgument
from kit.network.egress import place_of
from services.tools.outside.hosts import check_web_hosts, name_is_listed, parse_host_patterns, web_host_is_listed

LISTED = parse_host_patterns(["api.example.com", "*.Example.org", "http://intern.example.com:8080"])


@pytest.mark.parametrize(
    ("url", "is_listed"),
    [
        ("https://api.example.com/v1", True),
        ("https://API.example.com:443/", True),
        ("https://api.example.com:8443/", False),
        ("http://api.example.com/", False),
        ("https://x.api.example.com/", False),
        ("https://api.example.com.evil.example/", False),
        ("https://a.example.org/", True),
        ("https://a.b.example.org/", True),
        ("https://example.org/", False),
        ("https://evilexample.org/", False),
        ("http://intern.example.com:8080/", True),
        ("https://intern.example.com:8080/", False),
        ("http://intern.example.com/", False),
    ],
)
def test_scheme_name_and_port_are_those_of_the_operator(url: str, is_listed: bool) -> None:
    assert any(pattern.matches(place_of(url)) for pattern in LISTED) == is_listed


@pytest.mark.parametrize(
    ("domain", "is_listed"),
    [
        ("example.com", True),
        ("Example.COM", True),
        ("a.example.com", False),
        ("a.example.org", True),
        ("example.org", False),
    ],
)
def test_domains_are_listed_exactly_or_below_a_name(domain: str, is_listed: bool) -> None:
    assert name_is_listed(domain, ["example.com", "*.example.org"]) == is_listed


@pytest.mark.parametrize(
    ("url", "is_listed"),
    [
        ("https://bücher.example/", True),
        ("https://BÜCHER.example/", True),
        ("https://xn--bcher-kva.example/", True),
        ("https://bücher。example/", True),
        ("https://shop.faß.example/", True),
        ("https://shop.fass.example/", False),
        ("https://paypal.example/", True),
        ("https://pаypal.example/", False),  # its second letter is Cyrillic
        ("https://bucher.example/", False),
    ],
)
def test_names_of_other_alphabets_are_judged_by_their_ascii_form(url: str, is_listed: bool) -> None:
    listed = ["bücher.example", "*.faß.example", "paypal.example"]
    check_web_hosts(listed)
    assert web_host_is_listed(place_of(url), listed) == is_listed
    assert any(pattern.matches(place_of(url)) for pattern in parse_host_patterns(listed)) == is_listed


@pytest.mark.parametrize("name", ["a\u200db.example", "①②⑦.example", "-ü.example"])
def test_what_is_no_name_in_any_alphabet_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument):
        place_of(f"https://{name}/")
    with pytest.raises(ValueError, match="host"):
        check_web_hosts([name])


def test_address_in_other_digits_is_no_way_round_the_guard() -> None:
    assert place_of("http://127。0。0。1/").host == "127.0.0.1"
    with pytest.raises(InvalidArgument):
        place_of("http://１２７.1/")
