"""Pages to look at: one self-contained HTML file for a translation, a contrastive test or a PMI analysis."""
