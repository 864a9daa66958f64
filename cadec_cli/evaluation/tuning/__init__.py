"""Finding the temperature and the weights of an objective."""
