"""BLEU, chrF, and whether a difference is one."""
