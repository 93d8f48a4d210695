"""Chromium, driven by Playwright in a process of its own, behind a proxy that applies the egress guard."""
