"""How well questions are answered without a language model, through the public API."""
