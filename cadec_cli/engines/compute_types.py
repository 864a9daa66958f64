"""The number formats a model can be converted to, and which of them a machine can compute in."""

from cadec_cli.errors import CadecError

COMPUTE_TYPES = ("int8", "int8_float16", "float16", "bfloat16", "float32")

# The formats to compute in, best first, on machines that can't compute in the stored format.
_INSTEAD = {
    "int8": ("int8_float32",),
    "int8_float16": ("int8_float32", "int8"),
    "float16": (),
    "bfloat16": (),
    "float32": (),
}


def check_compute_type(compute_type: str) -> None:
    """Refuse an unknown compute type."""
    if compute_type not in COMPUTE_TYPES:
        raise CadecError(f"no compute type {compute_type!r}", f"there are {', '.join(COMPUTE_TYPES)}")


def usable_compute_type(compute_type: str, device: str = "cpu") -> str:
    """The compute type to request when CTranslate2 loads a model of this type on this device.

    CTranslate2 would choose a type itself, but it reports that on standard error each time.
    """
    import ctranslate2

    check_compute_type(compute_type)
    supported = ctranslate2.get_supported_compute_types(device)
    wanted = (compute_type, *_INSTEAD[compute_type], "float32")
    return next(name for name in wanted if name in supported)
