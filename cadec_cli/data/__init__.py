"""Corpora on disk and the training batches made of them."""
