"""`cadec repl`: the loop, its commands, its prompt, its state."""
