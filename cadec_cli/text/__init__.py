"""Strings to token ids and back; knows nothing of tensors or models."""
