"""Groundwork's other services, asked in the name of a tool's caller."""
