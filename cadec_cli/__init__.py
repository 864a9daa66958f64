"""Context-aware translation from any sentence-level model and a document language model."""

__version__ = "0.1.0"
