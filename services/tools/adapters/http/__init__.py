"""HTTP servers outside: web pages, search engines, and servers that the operator lists."""
