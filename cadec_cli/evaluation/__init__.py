"""How good and how fast: figures with how they were obtained."""
