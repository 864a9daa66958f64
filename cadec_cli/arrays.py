"""Short names for the types of numpy arrays. They give the type of the elements; shapes are in comments."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
