"""A glossary while decoding: terms in the score, candidates that have them, and what became of them."""
