"""Commands that are killed, out of space, not allowed to write or not alone: nothing may be lost.

    python tests/robustness/kills --kills 100 --only translate-srt --seed 7

`test_kills` is the short form of it.
"""
