"""Who the caller is: API keys, and logins at OIDC issuers."""
