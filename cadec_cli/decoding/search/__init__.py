"""One file per search, and the table of them."""
