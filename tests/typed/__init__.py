"""Code that the type check must refuse. mypy reads it (strict: an `ignore` that silences nothing is an error); nothing runs it."""
