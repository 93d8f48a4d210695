"""The tools: each module is one, in a package of its kind. See services/tools/sources/discovery.py for what a module needs."""
