"""Answers and conversations as documents to keep: Markdown, HTML, Word."""
