"""The paper as code: terms, objectives, tries, contexts. numpy at most."""
