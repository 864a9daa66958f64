"""Speed and memory as ratios within one run: `make bench`. Not part of the installed package."""

import cadec_cli  # noqa: F401 - says how threads wait, which has to be said before torch is imported
