"""A document that grows, with a person's choices and corrections, as the REPL keeps it."""
