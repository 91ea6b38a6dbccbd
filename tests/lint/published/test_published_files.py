"""The shapes of published code that waits, restated: each is found where it is, and nowhere else.

Functions, classes, parameters and variables carry their published names, since names are facts that
the linter sees; the rest is read and written again. Sources: the CPU check of gradients in torch 2.0.1
``torch/distributed/fsdp/sharded_grad_scaler.py`` (issue 82206; lines 161, 173, 174 and 179 there) and
what torch 2.13.0 has in its place, and gradient clipping as torch 1.4.0 and 1.6.0 had it in
``torch/nn/utils/clip_grad.py`` (lines 28 and 33, and line 35).
"""

import importlib.util
from pathlib import Path

import pytest
from linting import ALL, HOT, check, table

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

SCALER = {
    "gradients in an untyped list": """
        import logging
        from collections import defaultdict
        from typing import Dict, List

        from torch.cuda.amp.grad_scaler import GradScaler, _MultiDeviceReplicator
        from torch.optim.sgd import SGD

        log = logging.getLogger(__name__)

        class _GeneralMultiDeviceReplicator(_MultiDeviceReplicator):
            def __init__(self, master_tensor: torch.Tensor) -> None:
                self.master = master_tensor
                self._per_device_tensors: Dict[torch.device, torch.Tensor] = {}

        class ShardedGradScaler(GradScaler):
            def _foreach_non_finite_check_and_unscale_cpu_(
                self, grads: List, found_inf: torch.Tensor, inv_scale: torch.Tensor
            ) -> None:
                if len(grads) == 0:
                    return
                assert inv_scale.numel() == 1, "one number, please"
                assert found_inf.numel() == 1, "one number, please"
                expected_device = grads[0].device
                for grad in grads:
                    for tensor in grad:  # TPF201
                        if tensor.device != expected_device:
                            log.error("on %s instead of %s" % (tensor.device, expected_device))
                            raise ValueError("all gradients on one device, please")
                        if (
                            torch.isinf(tensor).any().item() is True  # TPF203
                            or torch.isnan(tensor).any().item() is True  # TPF203
                        ):
                            found_inf.data = torch.tensor([1.0])
                            break
                        else:
                            tensor.data *= inv_scale.item()  # TPF101

            def _unscale_grads_(
                self,
                optimizer: SGD,
                inv_scale: torch.Tensor,
                found_inf: torch.Tensor,
                allow_fp16: bool = True,
            ) -> Dict[torch.device, torch.Tensor]:
                per_device_inv_scale = _GeneralMultiDeviceReplicator(inv_scale)
                per_device_found_inf = _GeneralMultiDeviceReplicator(found_inf)
                per_device_and_dtype_grads = defaultdict(lambda: defaultdict(list))
                with torch.no_grad():
                    for group in optimizer.param_groups:
                        for param in group["params"]:
                            if param.grad is None:
                                continue
                            to_unscale = param.grad
                            per_device_and_dtype_grads[to_unscale.device][
                                to_unscale.dtype
                            ].append(to_unscale)
                    for device, per_dtype_grads in per_device_and_dtype_grads.items():
                        for grads in per_dtype_grads.values():
                            if grads[0].device.type == "cpu":
                                self._foreach_non_finite_check_and_unscale_cpu_(
                                    grads,
                                    per_device_found_inf.get(device),
                                    per_device_inv_scale.get(device),
                                )
                            else:
                                torch._amp_foreach_non_finite_check_and_unscale_(
                                    grads,
                                    per_device_found_inf.get(device),
                                    per_device_inv_scale.get(device),
                                )
                return per_device_found_inf._per_device_tensors
        """,
    "the method alone": """
        from typing import List

        class ShardedGradScaler:
            def _foreach_non_finite_check_and_unscale_cpu_(
                self, grads: List, found_inf: torch.Tensor, inv_scale: torch.Tensor
            ) -> None:
                expected_device = grads[0].device
                for grad in grads:
                    for tensor in grad:  # TPF201
                        if tensor.device != expected_device:
                            raise ValueError("all gradients on one device, please")
                        if (
                            torch.isinf(tensor).any().item() is True  # TPF203
                            or torch.isnan(tensor).any().item() is True  # TPF203
                        ):
                            found_inf.data = torch.tensor([1.0])
                            break
                        else:
                            tensor.data *= inv_scale.item()  # TPF101
        """,
    "gradients in a typed list": """
        def _foreach_non_finite_check_and_unscale_cpu_(
            grads: list[Tensor], found_inf: Tensor, inv_scale: Tensor
        ) -> None:
            for grad in grads:
                for tensor in grad:  # TPF201
                    if torch.isinf(tensor).any().item() or torch.isnan(tensor).any().item():  # TPF203, TPF203
                        found_inf.data = torch.tensor([1.0])
                        break
                    tensor.data *= inv_scale.item()  # TPF101
        """,
    "2.13.0: whole gradients, on the device": """
        from collections import defaultdict

        from torch.amp.grad_scaler import GradScaler, _MultiDeviceReplicator

        class _GeneralMultiDeviceReplicator(_MultiDeviceReplicator):
            def __init__(self, master_tensor: torch.Tensor) -> None:
                self.master = master_tensor
                self._per_device_tensors: dict[torch.device, torch.Tensor] = {}

        class ShardedGradScaler(GradScaler):
            def _unscale_grads_(
                self,
                optimizer: torch.optim.Optimizer,
                inv_scale: torch.Tensor,
                found_inf: torch.Tensor,
                allow_fp16: bool = True,
            ) -> dict[torch.device, torch.Tensor]:
                per_device_inv_scale = _GeneralMultiDeviceReplicator(inv_scale)
                per_device_found_inf = _GeneralMultiDeviceReplicator(found_inf)
                per_device_and_dtype_grads = defaultdict(lambda: defaultdict(list))
                with torch.no_grad():
                    for group in optimizer.param_groups:
                        for param in group["params"]:
                            if param.grad is None:
                                continue
                            if (not allow_fp16) and param.grad.dtype == torch.float16:
                                raise ValueError("no half precision, please")
                            if param.grad.is_sparse:
                                if param.grad.dtype is torch.float16:
                                    param_grad_fp32 = param.grad.type(torch.float32).coalesce()  # TPF404
                                    param.grad = param_grad_fp32.type(torch.float16)
                                to_unscale = param.grad._values()
                            else:
                                to_unscale = param.grad
                            per_device_and_dtype_grads[to_unscale.device][
                                to_unscale.dtype
                            ].append(to_unscale)
                    for device, per_dtype_grads in per_device_and_dtype_grads.items():
                        for grads in per_dtype_grads.values():
                            torch._amp_foreach_non_finite_check_and_unscale_(
                                grads,
                                per_device_found_inf.get(device),
                                per_device_inv_scale.get(device),
                            )
                return per_device_found_inf._per_device_tensors
        """,
}


@table(SCALER)
def test_grad_scaler(code: str) -> None:
    check(code)


CLIPPING = {
    "1.4.0: a running total on the host": '''
        import warnings
        from torch._six import inf

        def clip_grad_norm_(parameters, max_norm, norm_type=2):
            """Scale gradients down.

            Arguments:
                parameters (Iterable[Tensor] or Tensor): whose gradients are scaled
                max_norm (float or int): the largest norm
                norm_type (float or int): of the norm
            """
            if isinstance(parameters, torch.Tensor):
                parameters = [parameters]
            parameters = list(filter(lambda p: p.grad is not None, parameters))
            max_norm = float(max_norm)
            norm_type = float(norm_type)
            if norm_type == inf:
                total_norm = max(p.grad.data.abs().max() for p in parameters)  # TPF103
            else:
                total_norm = 0
                for p in parameters:
                    param_norm = p.grad.data.norm(norm_type)  # TPF204
                    total_norm += param_norm.item() ** norm_type  # TPF206
                total_norm = total_norm ** (1.0 / norm_type)
            clip_coef = max_norm / (total_norm + 1e-6)
            if clip_coef < 1:  # TPF301
                for p in parameters:
                    p.grad.data.mul_(clip_coef)  # TPF204
            return total_norm

        def clip_grad_norm(parameters, max_norm, norm_type=2):
            warnings.warn("deprecated", stacklevel=2)
            return clip_grad_norm_(parameters, max_norm, norm_type)
        ''',
    "1.6.0: a branch on the factor": '''
        from torch._six import inf

        def clip_grad_norm_(parameters, max_norm, norm_type=2):
            """Scale gradients down.

            Arguments:
                parameters (Iterable[Tensor] or Tensor): whose gradients are scaled
                max_norm (float or int): the largest norm
                norm_type (float or int): of the norm
            """
            if isinstance(parameters, torch.Tensor):
                parameters = [parameters]
            parameters = [p for p in parameters if p.grad is not None]
            max_norm = float(max_norm)
            norm_type = float(norm_type)
            if len(parameters) == 0:
                return torch.tensor(0.0)
            device = parameters[0].grad.device
            if norm_type == inf:
                total_norm = max(p.grad.detach().abs().max().to(device) for p in parameters)  # TPF103
            else:
                total_norm = torch.norm(
                    torch.stack(
                        [torch.norm(p.grad.detach(), norm_type).to(device) for p in parameters]  # TPF204
                    ),
                    norm_type,
                )
            clip_coef = max_norm / (total_norm + 1e-6)
            if clip_coef < 1:  # TPF301
                for p in parameters:
                    p.grad.detach().mul_(clip_coef.to(p.grad.device))  # TPF204
            return total_norm
        ''',
    "clipping by value": '''
        def clip_grad_value_(parameters, clip_value):
            """Clamp gradients.

            Arguments:
                parameters (Iterable[Tensor] or Tensor): whose gradients are clamped
                clip_value (float or int): the largest value
            """
            if isinstance(parameters, torch.Tensor):
                parameters = [parameters]
            clip_value = float(clip_value)
            for p in filter(lambda p: p.grad is not None, parameters):
                p.grad.data.clamp_(min=-clip_value, max=clip_value)  # TPF204
        ''',
    "2.13.0: norms of all, a clamped factor, a check that is off by default": """
        def _get_total_norm(
            tensors: list[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False
        ) -> torch.Tensor:
            norm_type = float(norm_type)
            if len(tensors) == 0:
                return torch.tensor(0.0)
            first_device = tensors[0].device
            norms = torch._foreach_norm(tensors, norm_type)
            total_norm = torch.linalg.vector_norm(
                torch.stack([norm.to(first_device) for norm in norms]), norm_type
            )
            if error_if_nonfinite and torch.logical_or(total_norm.isnan(), total_norm.isinf()):
                raise RuntimeError("the gradients' norm is not finite")
            return total_norm

        def _clip_grads_with_norm_(
            parameters: list[Tensor], max_norm: float, total_norm: torch.Tensor
        ) -> None:
            grads = [p.grad for p in parameters if p.grad is not None]
            if len(grads) == 0:
                return
            clip_coef = max_norm / (total_norm + 1e-6)
            clip_coef_clamped = torch.clamp(clip_coef, max=1.0)
            torch._foreach_mul_(grads, clip_coef_clamped)

        def clip_grad_norm_(
            parameters: list[Tensor],
            max_norm: float,
            norm_type: float = 2.0,
            error_if_nonfinite: bool = False,
        ) -> torch.Tensor:
            grads = [p.grad for p in parameters if p.grad is not None]
            total_norm = _get_total_norm(grads, norm_type, error_if_nonfinite)
            _clip_grads_with_norm_(parameters, max_norm, total_norm)
            return total_norm
        """,
}


@table(CLIPPING)
def test_gradient_clipping(code: str) -> None:
    check(code)


# Files of torch 2.13.0, the scope, and how many findings they have at the least.
INSTALLED = [
    ("optim/lbfgs.py", HOT, 33),
    ("amp/grad_scaler.py", ALL, 2),
    ("distributed/fsdp/sharded_grad_scaler.py", ALL, 2),
]


@pytest.mark.parametrize(("name", "options", "least"), INSTALLED, ids=[row[0] for row in INSTALLED])
def test_files_of_the_installed_torch(name: str, options: Options, least: int) -> None:
    found = installed(name, options)
    assert len(found) >= least, found


def installed(name: str, options: Options) -> list[str]:
    """The codes found in a file of the installed torch, which is read and not imported."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("torch is not installed")
    path = Path(spec.submodule_search_locations[0]) / name
    return [one.code for one in lint(path.read_text(encoding="utf-8"), str(path), options)]
