"""Documents with markup: paragraphs whose words are translated, and all else as it was."""
