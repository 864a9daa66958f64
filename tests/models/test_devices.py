"""Names of devices."""

import pytest
import torch

from cadec_cli.errors import CadecError
from cadec_cli.models.devices import check_device, choose_device, ctranslate2_device


def test_a_name_means_a_device() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("name", ["auto", "cpu", "cpu:0"])
def test_both_libraries_compute_on_the_same_device(name: str) -> None:
    check_device(name)
    device = choose_device(name)
    assert ctranslate2_device(name) == (device.type, device.index or 0) == ("cpu", 0)


@pytest.mark.parametrize("name", ["abacus", "gpu", "mps", "meta", "cuda:x", ""])
def test_other_names_are_refused(name: str) -> None:
    for asked in (check_device, choose_device, ctranslate2_device):
        with pytest.raises(CadecError, match="unknown device"):
            asked(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_told(name: str) -> None:
    for asked in (check_device, choose_device, ctranslate2_device):
        with pytest.raises(CadecError, match="no GPU"):
            asked(name)
