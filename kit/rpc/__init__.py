"""Calls between services: servers and channels, their certificates, what becomes of a call that fails, and its trace."""
