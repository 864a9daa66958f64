"""Keeping what must not change: defects, stand-ins, where tags go."""
