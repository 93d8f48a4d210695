"""The agents: every module here is one, and so is every file in the folders of GROUNDWORK_AGENTS_FOLDERS; see agent.py."""
