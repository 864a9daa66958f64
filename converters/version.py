"""Which way of writing CTranslate2 models this is: asked before any conversion, and so without torch."""

# Raised when the same weights would be written in another way: what was converted before is then not used.
CONVERTER_VERSION = 1
