"""Connections of users and tenants to other services."""
