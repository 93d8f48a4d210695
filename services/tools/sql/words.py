"""What both SQL tools say of themselves."""

from collections.abc import Mapping
from typing import Any

DATABASE: Mapping[str, Any] = {
    "type": "string",
    "description": "Which database. May be left out where there is one.",
    "minLength": 1,
    "maxLength": 40,
}
NEEDS_DATABASE = "name a database in GROUNDWORK_TOOLS_DATABASES"
DATABASE_WORDS = (
    r"\b(?:database|sql|select|tables?|query|rows?|how many|average|total|top \d+|revenue|sales|customers?|orders?)\b",
    r"\b(?:per|by) (?:month|year|quarter|customer|country|category)\b",
    r"datenbank|tabelle|wie ?viele|umsatz|durchschnitt",
    r"base de (?:données|datos|dados)|combien|cu[aá]nt[oa]s|quant[oa]s|quanti|banca dati|hoeveel|ile\b",
    r"баз[аеыу] данных|сколько|таблиц|базі даних|скільки|veritaban|kaç\b",
    r"数据库|多少|データベース|いくつ|데이터베이스|몇|قاعدة البيانات|كم\b",
)
"""Of messages that call for the tools of the databases."""
