"""The manner that a user asks for, while decoding: candidates that have it, and what became of it."""
