"""One loop that trains any of the models; the task's loss is passed in."""
