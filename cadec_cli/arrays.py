"""Short names for the types of numpy arrays. They say what is in an array; its shape stands in a comment."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
