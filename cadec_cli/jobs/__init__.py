"""Translation jobs: in step, by document, as a stream; what is done, and where output goes."""
