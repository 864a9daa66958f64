"""The paper's experiment as steps: from corpora to its tables, at three scales.

scales.py                     the scales: their sizes and systems; the working directory
corpora.py toy_corpora.py     the texts of the three scales
experiment.py                 all steps, the same for every scale
steps.py                      runs them, each once
measurements.py               results and speeds
report.py                     the claims to check; results as tables and as files
"""
