"""BLEU, chrF, and tests of significance."""
