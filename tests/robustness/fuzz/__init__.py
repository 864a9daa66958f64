"""Damaged, hostile and random input for every reader and loader.

    targets/       one line per reader: a valid file of it, and what reading it has to keep
    mutations.py   what is done to a valid file
    trials.py      one input, one verdict: read in a process that may crash, hang or eat all memory alone
    __main__.py    `make fuzz MINUTES=30`: on and on with fresh seeds, which are printed

The property is the same everywhere: any bytes give a value that makes sense, or one clear error, soon, and
leave nothing behind.
"""
