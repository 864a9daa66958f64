"""Figures of quality and of speed, each with how it was obtained."""
