"""The tools: each module is one. See services/tools/sources/discovery.py for what a module needs."""
