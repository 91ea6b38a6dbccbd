"""The names of torch's devices, and the origins of tensors on the host."""

from __future__ import annotations

# "cpu" is the host.
DEVICE_NAMES = frozenset(("cpu", "cuda", "mps", "xpu", "npu", "hpu", "mtia", "xla"))


def names_device(text: object) -> bool:
    """True if the text is a device's name, with or without an index."""
    return isinstance(text, str) and text.partition(":")[0] in DEVICE_NAMES


def is_host_name(text: object) -> bool:
    """True for the name of the host as a device."""
    return isinstance(text, str) and text.partition(":")[0] == "cpu"


def either_names_a_device(a: object, b: object) -> bool:
    """True if two texts name different devices, so that either one names a device."""
    return a != b and names_device(a) and names_device(b)


def on_either_device(a: str, b: str) -> str:
    """Return the device's one of two classes of torch that differ by the device; "" for others.

    `torch.cuda.FloatTensor if cuda else torch.FloatTensor` is chosen as a device is.
    """
    for one, other in ((a, b), (b, a)):
        if ".cuda." in one and one.replace(".cuda.", ".", 1) == other:
            return one
    return ""


# The residence of a tensor that only its combination with a host tensor shows to be on the host.
BESIDE_HOST = "beside the host's"
# The residence of a tensor that the program puts on the device of its choice, an accelerator where
# there is one: that of a variable, or that of a module's parameters.
CHOSEN = "chosen"
# The residences of tensors that a run may have on the host as well as on an accelerator.
OPEN = ("unknown", CHOSEN)


def joined_device(a: str, b: str) -> str:
    """Return where one of two tensors lies; a host tensor joins one that is only shown to be.

    Where one path alone moves a tensor to a device, as below ``if use_cuda``, the program chooses.
    """
    if a == b:
        return a
    if {a, b} == {"host", BESIDE_HOST}:
        return BESIDE_HOST
    return CHOSEN if CHOSEN in (a, b) or "device" in (a, b) else "unknown"


# The origins of a host tensor: the numbers of a factory, or data. See `Tensor`.
MADE = ("factory", "python", "numpy")
# The origin of a tensor that only one of several paths made on the host.
SOMETIMES = "sometimes"


def joined_origin(a: tuple[str, str], b: tuple[str, str]) -> str:
    """Return the origin of one of two tensors, each given as its device and its origin."""
    if a[1] == b[1]:
        return a[1]
    made = any(device == "host" and origin in MADE for device, origin in (a, b))
    apart = (a[0] != b[0] and made) or SOMETIMES in (a[1], b[1])
    return SOMETIMES if apart else ""
