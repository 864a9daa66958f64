"""The ids that mean the same in every vocabulary of the project."""

# EOS ends a sentence and is the D-LM's sentence boundary.
PAD, UNK, BOS, EOS = range(4)
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
