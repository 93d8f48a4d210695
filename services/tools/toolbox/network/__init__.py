"""Tools that ask servers outside: web pages, HTTP, e-mail."""
