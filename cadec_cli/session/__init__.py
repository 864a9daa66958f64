"""A document that grows, with choices and corrections: what the REPL keeps."""
