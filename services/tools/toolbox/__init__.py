"""The tools: each module is one. See services/tools/calling/discovery.py for what a module needs."""
