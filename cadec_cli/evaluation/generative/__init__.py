"""Generative tests: how often a translation says the word that its context calls for."""
