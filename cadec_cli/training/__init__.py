"""One loop that trains any kind of model; one table of the kinds."""
