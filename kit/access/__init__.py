"""Who calls and what they may: principals, scopes, tokens between services and the keys that sign them, API keys."""
