"""The tools: each module is one. See services/tools/discovery.py for what a module needs."""
