"""The paper's experiment as steps: from corpora to its tables, at three scales.

made_up.py small_corpora.py opensubtitles.py    the texts of the three scales
scales.py systems.py          sizes; the rows of the tables
starting.py places.py         the working directory
experiment.py                 all steps, the same for every scale
steps.py                      doing them, each once
speed.py                      sentences per second
tuned.py results.py           what came out
tables.py report.py           as tables, and as files
claims.py                     what must hold
"""
