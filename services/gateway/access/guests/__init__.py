"""Guests: people without an account, whom the operator may let in for a day (ADR 28)."""
