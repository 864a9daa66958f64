"""Catalogues of strings: the messages of programs, and tables. One module per format, and what they share."""
