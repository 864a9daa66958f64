"""Tokenizers of other toolkits' models, as text to token ids and back."""
