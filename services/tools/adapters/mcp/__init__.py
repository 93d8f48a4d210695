"""Servers of the Model Context Protocol: sessions, logins, and the records that tenants keep of them."""
