"""Web pages and e-books, which are made of web pages."""
