"""Databases: their engines, and what they answer as passages."""
