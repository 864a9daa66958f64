"""Checks of a translation that anybody made, line by line, without a reference and mostly without a model."""
