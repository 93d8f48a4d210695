"""Names of hosts that an operator allows."""

import pytest

from kit.network.egress import place_of
from services.tools.outside.hosts import name_is_listed, parse_host_patterns

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
