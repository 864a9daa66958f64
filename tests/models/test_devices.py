"""Names of devices."""

import pytest
import torch

from cadec_cli.errors import CadecError
from cadec_cli.models.devices import choose_device


def test_a_name_means_a_device() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["abacus", "gpu", "mps", "meta", "cuda:x", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(CadecError, match="unknown device"):
        choose_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises(CadecError, match="no GPU"):
        choose_device(name)
