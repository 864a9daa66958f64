"""Reports: one self-contained HTML page for a translation, a contrastive test or a PMI analysis."""
