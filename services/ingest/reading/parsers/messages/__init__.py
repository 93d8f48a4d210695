"""E-mails and chats."""
