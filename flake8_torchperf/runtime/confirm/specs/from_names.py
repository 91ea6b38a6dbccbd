"""Suggests specs by a parameter's name alone: the last resort before a general pool of inputs.

Used if neither the interpreter, an annotation nor a default gives a parameter's type, and for the
attributes of a stand-in object.
"""

from __future__ import annotations

import re

from flake8_torchperf.runtime.confirm.specs import input_specs
from flake8_torchperf.runtime.confirm.specs.input_specs import (
    WIDTH,
    InputSpec,
    fixed,
    listing,
    simple,
    tensor,
)

# Ordered: the first pattern found in the name decides. Conventions of torch's own sources.
_SWITCH = re.compile(
    r"^(is|use|has|do|with|return|enable|keep|should|need|allow|no)_|^(training|inplace|bias"
    r"|maximize|foreach|fused|capturable|differentiable|reverse|causal|amsgrad|nesterov)$"
)
_SIZE = re.compile(
    r"^(n|k|d|b|c|h|w|t|m)$|^(num|n|max|min)_|(size|dim|dims|features|channels|length|len|heads"
    r"|layers|classes|steps|width|height|count|embeddings|groups|dimension|planes|hidden)$"
)
_FRACTION = re.compile(
    r"(^|_)(lr|eps|p|alpha|beta|beta1|beta2|gamma|momentum|dropout|rate|decay|weight_decay|tol"
    r"|scale|temperature|coef|factor|threshold|clip|std|smoothing|margin|max_norm|norm_type"
    r"|lambd|rho|value|prob)$"
)
_MASK = re.compile(r"mask$|^(valid|done|finished|keep|active)s?$")
_INDEX = re.compile(
    r"(index|indices|idx|idxs|ids|labels?|targets?|lengths?|sizes|tokens|positions)$"
)
_PARAMETERS = re.compile(r"^(params?|parameters|weights|param_list)$")
_MODULE = re.compile(r"(^|_)(model|module|net|network|layer|encoder|decoder|backbone|proj)$")
_CALLABLE = re.compile(
    r"(^|_)(fn|func|function|closure|criterion|callback|hook|activation|loss_fn|loss_func|forward)$"
)
_LOADER = re.compile(r"(loader|dataloader|batches|data_iter|dataset)$")
_LIST = re.compile(r"^(grads|gradients|tensors|outputs|losses|sequences|norms|predictions|preds)$")


def is_device(name: str) -> bool:
    """True if a name is that of a device."""
    lower = name.lower().lstrip("_")
    return lower == "device" or lower.endswith("_device")


def by_name(name: str) -> list[InputSpec]:
    """Return specs that the name suggests, likeliest first; none where it suggests nothing."""
    lower = name.lower().lstrip("_")
    if lower == "ctx":
        return [simple("context")]
    if lower == "betas":
        return [fixed(input_specs.values((0.9, 0.999)))]
    if is_device(name):
        return [simple("device")]
    if lower.endswith("dtype"):
        return [simple("dtype")]
    if "optimizer" in lower or lower in ("optim", "opt"):
        return [simple("optimizer")]
    if _PARAMETERS.search(lower):
        return [listing(tensor((WIDTH,), parameter=True)), simple("parameters")]
    if _LIST.search(lower):
        return [listing(tensor((WIDTH,))), *input_specs.tensors()[:4]]
    if _LOADER.search(lower):
        return [simple("loader")]
    if _MODULE.search(lower):
        return [simple("module")]
    if _CALLABLE.search(lower):
        return [simple("callable")]
    if _SWITCH.search(lower):
        return input_specs.values((False, True))
    if _MASK.search(lower):
        return input_specs.tensors("bool")
    if _INDEX.search(lower):
        return [*input_specs.tensors("int")[:5], *input_specs.values((1,))]
    if _FRACTION.search(lower):
        return input_specs.values((0.5, 2.0))
    if _SIZE.search(lower):
        return input_specs.values((WIDTH, 2, 1, 16))
    return []


def pool() -> list[InputSpec]:
    """Return the specs to try where nothing at all is known."""
    return [
        *input_specs.tensors()[:6],
        tensor(()),
        listing(tensor((WIDTH,))),
        *input_specs.values((2, 0.5, None, True, "a")),
        simple("module"),
        simple("callable"),
        simple("stand-in"),
        input_specs.mapping({}),
        listing(input_specs.value(2), 2),
    ]
