"""An error names options without knowing who reads it: Python shows keywords, the terminal shows flags."""

import pickle

import pytest

from cadec_cli.errors import (
    CadecError,
    Interrupted,
    UsageError,
    as_flags,
    as_keywords,
    as_usage_error,
    option,
)

TEXT = f"{option('long', 'split')} cuts it, {option('max-input')} allows it"


def test_an_option_is_a_keyword_in_python_and_a_flag_in_a_terminal() -> None:
    assert as_keywords(TEXT) == 'long="split" cuts it, max_input allows it'
    assert as_flags(TEXT) == "--long split cuts it, --max-input allows it"
    assert as_flags("no options here") == as_keywords("no options here") == "no options here"


def test_an_error_speaks_python() -> None:
    error = CadecError(f"too long without {option('long', 'split')}", f"use {option('max-input')}")
    assert str(error) == error.message == 'too long without long="split"'
    assert error.hint == "use max_input"
    assert as_flags(error.marked_hint) == "use --max-input"
    assert str(Interrupted(f"{option('resume')} continues")) == "resume=True continues"


def test_a_usage_error_and_a_worker_s_error_keep_their_marks() -> None:
    with pytest.raises(UsageError) as caught, as_usage_error():
        raise CadecError(TEXT, TEXT)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert as_flags(error.marked_message) == as_flags(error.marked_hint) == as_flags(TEXT)
