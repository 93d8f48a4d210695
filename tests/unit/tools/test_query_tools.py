"""Queries routed, planned and worded anew, by rules alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.queries.planning import PHRASES_MAX, QUERIES_MAX, QUERIES_MIN
from kit.queries.rewriting import distinct
from services.tools.errors import ToolError
from services.tools.toolbox.searching.multi_query_rewrite import multi_query_rewrite
from services.tools.toolbox.searching.query_plan import query_plan
from services.tools.toolbox.searching.router_select import router_select

NOW = "2026-11-22T12:00:00"
PIECES = (
    *(
        "what",
        "is",
        "the",
        "Who",
        "refund",
        "@durov",
        '"exact words"',
        "in",
        "May",
        "2024",
        "between",
        "and",
        "E104",
        "vs",
    ),
    *("почему", "цены", "в", "январе", "返金", "?", "-", "«", "(SSO)", "t.me/news", "channel", "Compare", "two-factor"),
)
QUESTIONS = st.one_of(
    st.text(min_size=1, max_size=200), st.lists(st.sampled_from(PIECES), min_size=1, max_size=30).map(" ".join)
)


def _plan(query: str, **more: Any) -> dict[str, Any]:
    return query_plan(query, reference_time=NOW, **more)


@pytest.mark.parametrize(
    ("query", "strategy", "reason"),
    [
        ('"thirty days after delivery"', "lexical", "quotation marks"),
        ("«тридцать дней»", "lexical", "quotation marks"),
        ("E104", "lexical", "identifier (E104)"),
        ("CVE-2024-1234 mitigation", "lexical", "identifier (CVE-2024-1234)"),
        ("user_settings.json default value", "lexical", "identifier (user_settings.json)"),
        ("https://example.com/docs", "lexical", "identifier"),
        ("ann@example.com", "lexical", "identifier"),
        ("getUserName raises", "lexical", "identifier (getUserName)"),
        ("refund AND policy", "lexical", "operators"),
        ("author:ann contract", "lexical", "operators"),
        ("refund policy", "lexical", "very short"),
        ("дуров август 2023 анонсы", "lexical", "number or a date"),
        ("Acme revenue 2023 Q3", "lexical", "number or a date"),
        ("Why do customers stop using the product after a few months of regular use?", "dense", "abstract"),
        ("How does the billing system decide which invoices are sent to the legal department?", "dense", "abstract"),
        ("почему люди перестают доверять новостям в социальных сетях", "dense", "abstract"),
        ("comment les clients perçoivent la qualité du service", "dense", "abstract"),
        ("What important announcements did Pavel Durov make in August 2023?", "hybrid", "a name (Pavel)"),
        (
            "Explain how the E104 error relates to long overheating of the pump under load",
            "hybrid",
            "identifier (E104)",
        ),
        ("What is the refund period of Tuesday deliveries here?", "hybrid", "name"),
        ("What is the refund period?", "hybrid", "neither"),
        ("返金ポリシーは何ですか", "hybrid", "neither"),
        ("?", "hybrid", "neither"),
    ],
)
def test_strategy_follows_the_shape_of_the_query(query: str, strategy: str, reason: str) -> None:
    chosen = router_select(query)
    assert chosen["strategy"] == strategy
    assert reason in "; ".join(chosen["reasons"])


def test_plan_of_a_question_about_a_channel_and_a_month() -> None:
    planned = _plan("Какие важные объявления делал @durov в Telegram в августе 2023?", timezone="Europe/Moscow")
    assert planned["queries"][0] == "Какие важные объявления делал @durov в Telegram в августе 2023?"
    assert "важные объявления делал Telegram" in planned["queries"]
    assert "Какие важные анонсы делал в Telegram" in planned["queries"]
    assert planned["filters"] == {
        "date_from": "2023-08-01T00:00:00+03:00",
        "date_to": "2023-09-01T00:00:00+03:00",
        "channel": ["durov", "@durov"],
    }
    assert (planned["must_phrases"], planned["should_phrases"], planned["strategy"]) == ([], ["Telegram"], "lexical")


def test_open_period_gives_one_date() -> None:
    assert _plan("What changed since last month?")["filters"] == {"date_from": "2026-10-01T00:00:00+00:00"}
    assert _plan("What changed?")["filters"] == {}


def test_what_is_quoted_must_be_found_and_is_not_worded_anew() -> None:
    planned = _plan('What causes "error E104" in the Nordwind pump?')
    assert planned["must_phrases"] == ["error E104"]
    assert planned["should_phrases"] == ["Nordwind"]
    assert all('"error E104"' in query for query in planned["queries"])


@pytest.mark.parametrize(
    ("query", "channels", "expected"),
    [
        ('What was announced in channel "RBC News" in 2023?', [], ["RBC News"]),
        ("в канале Новости Москвы о ценах", [], ["Новости Москвы"]),
        ("posts of t.me/rbc_news about prices", [], ["rbc_news", "@rbc_news"]),
        ("новости РБК за январь", ["РБК", "Дождь"], ["РБК"]),
        ("what did the support desk say", ["Support Desk"], ["Support Desk"]),
        ("write to ann@example.com", [], None),
        ("the channel tunnel", [], None),
    ],
)
def test_channels_that_are_named_become_a_filter(query: str, channels: list[str], expected: list[str] | None) -> None:
    planned = _plan(query, channels=channels)
    assert planned["filters"].get("channel") == expected
    assert "RBC News" not in planned["must_phrases"]


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        (
            "What is the refund period and how do I return an item?",
            {"What is the refund period", "how do I return an item?"},
        ),
        ("Where is the office? Who leads the sales team?", {"Where is the office?", "Who leads the sales team?"}),
        (
            "Compare the Alpha router and the Beta router in speed",
            {"the Alpha router in speed", "the Beta router in speed"},
        ),
        ("Was ist der Unterschied zwischen Miete und Kauf?", {"Miete", "Kauf"}),
        ("Postgres vs MySQL for analytics", {"Postgres for analytics", "MySQL for analytics"}),
    ],
)
def test_question_of_several_parts_is_searched_by_its_parts_too(query: str, parts: set[str]) -> None:
    assert parts <= set(_plan(query)["queries"])


@pytest.mark.parametrize(
    "query", ["refund", "What is the refund policy?", "When did Acme buy Nordwind?", "возврат товара"]
)
def test_plan_has_at_least_three_queries(query: str) -> None:
    assert len(_plan(query)["queries"]) >= QUERIES_MIN


@given(QUESTIONS)
def test_any_question_is_planned_routed_and_worded_anew_within_bounds(question: str) -> None:
    planned, rewritten = _plan(question), multi_query_rewrite(question, 6)["queries"]
    assert planned == _plan(question)
    assert len(planned["queries"]) <= QUERIES_MAX
    assert planned["queries"] == distinct(planned["queries"])
    assert all(query.strip() for query in [*planned["queries"], *rewritten])
    assert max(len(planned["must_phrases"]), len(planned["should_phrases"])) <= PHRASES_MAX
    assert " ".join(question.split()) not in rewritten
    assert len(rewritten) <= 6
    assert router_select(question)["strategy"] in {"lexical", "dense", "hybrid"}


@pytest.mark.parametrize(
    ("query", "wordings"),
    [
        ("What is the refund policy?", ["the refund policy is", "refund policy", "What is the reimbursement policy"]),
        ("How do I reset my password?", ["steps to reset my password", "reset password"]),
        ("Who founded Acme?", ["Acme was founded by"]),
        ("refunds", ["reimbursements"]),
        ("two-factor authentication", ["twofactor authentication", "2-factor authentication"]),
        ("What does Single Sign On (SSO) cost?", ["SSO cost"]),
        ("Почему растут цены?", ["растут цены, потому что"]),
        ("Wie kann ich den Vertrag kündigen?", ["Anleitung: den Vertrag kündigen", "Vertrag kündigen"]),
        ("¿Qué es la política de devolución?", ["la política de devolución es", "política de devolución"]),
        ("Pourquoi les prix montent ?", ["les prix montent parce que"]),
    ],
)
def test_query_is_worded_anew(query: str, wordings: list[str]) -> None:
    assert set(wordings) <= set(multi_query_rewrite(query, 6)["queries"])


def test_wordings_that_find_the_same_are_left_out() -> None:
    assert distinct(["refund policy", "Refund policy?", "policy, refund", "refund rule", ""]) == [
        "refund policy",
        "refund rule",
    ]
    assert len(multi_query_rewrite("How do I reset my password?", 1)["queries"]) == 1


def test_time_zone_that_there_is_not_is_named() -> None:
    with pytest.raises(ToolError, match="Mars"):
        _plan("today", timezone="Mars/Olympus")
