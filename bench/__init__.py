"""Speed and memory as ratios within one run: `make bench`. Not part of the installed package."""
