"""Glossaries: what terms of a source text are to be called in its translation."""
