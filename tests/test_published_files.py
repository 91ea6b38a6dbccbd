"""The shapes of published code that waits, restated: each is found where it is, and nowhere else.

Sources, read and written again in our own words: the CPU check of gradients in torch 2.0.1
``torch/distributed/fsdp/sharded_grad_scaler.py`` (issue 82206), and gradient clipping as torch
1.4.0 and 1.6.0 had it in ``torch/nn/utils/clip_grad.py``.
"""

from linting import check, table

SCALER = {
    "gradients in an untyped list": """
        import logging
        from typing import List

        log = logging.getLogger(__name__)

        class Scaler:
            def _check_and_unscale(
                self, grads: List, found_inf: torch.Tensor, inv_scale: torch.Tensor
            ) -> None:
                if len(grads) == 0:
                    return
                assert inv_scale.numel() == 1, "one number, please"
                assert found_inf.numel() == 1, "one number, please"
                expected = grads[0].device
                for grad in grads:
                    for value in grad:  # TPF201
                        if value.device != expected:
                            log.error("on %s instead of %s" % (value.device, expected))
                            raise ValueError("all gradients on one device, please")
                        if (
                            torch.isinf(value).any().item() is True  # TPF203
                            or torch.isnan(value).any().item() is True  # TPF203
                        ):
                            found_inf.data = torch.tensor([1.0])
                            break
                        else:
                            value.data *= inv_scale.item()  # TPF101
        """,
    "gradients in a typed list": """
        def unscale_step(grads: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
            for grad in grads:
                for value in grad:  # TPF201
                    if torch.isinf(value).any().item() or torch.isnan(value).any().item():  # TPF203, TPF203
                        found_inf.fill_(1.0)
                        break
                    value.data *= inv_scale.item()  # TPF101
        """,
    "as it was mended: whole gradients, on the device": """
        from collections import defaultdict

        class Scaler:
            def _unscale(self, grads: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
                by_device = defaultdict(list)
                for grad in grads:
                    if grad.is_sparse and grad.dtype is torch.float16:
                        grad = grad.coalesce()
                    by_device[grad.device].append(grad)
                for device, some in by_device.items():
                    torch._amp_foreach_non_finite_check_and_unscale_(
                        some, found_inf.to(device, non_blocking=True), inv_scale
                    )
        """,
}


@table(SCALER)
def test_grad_scaler(code: str) -> None:
    check(code)


CLIPPING = {
    "1.4.0: a running total on the host": '''
        from math import inf

        def clip(parameters, max_norm, norm_type=2):
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
                total = max(p.grad.data.abs().max() for p in parameters)  # TPF103
            else:
                total = 0
                for p in parameters:
                    norm = p.grad.data.norm(norm_type)  # TPF204
                    total += norm.item() ** norm_type  # TPF206
                total = total ** (1.0 / norm_type)
            factor = max_norm / (total + 1e-6)
            if factor < 1:  # TPF301
                for p in parameters:
                    p.grad.data.mul_(factor)  # TPF204
            return total
        ''',
    "1.6.0: a branch on the factor": '''
        from math import inf

        def clip(parameters, max_norm, norm_type=2):
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
                total = max(p.grad.detach().abs().max().to(device) for p in parameters)  # TPF103
            else:
                norms = [p.grad.detach().norm(norm_type).to(device) for p in parameters]  # TPF204
                total = torch.stack(norms).norm(norm_type)
            factor = max_norm / (total + 1e-6)
            if factor < 1:  # TPF301
                for p in parameters:
                    p.grad.detach().mul_(factor.to(p.grad.device))  # TPF204
            return total
        ''',
    "clipping by value": '''
        def clip(parameters, limit):
            """Clamp gradients.

            Arguments:
                parameters (Iterable[Tensor] or Tensor): whose gradients are clamped
                limit (float or int): the largest value
            """
            if isinstance(parameters, torch.Tensor):
                parameters = [parameters]
            limit = float(limit)
            for p in filter(lambda p: p.grad is not None, parameters):
                p.grad.data.clamp_(min=-limit, max=limit)  # TPF204
        ''',
    "today: norms of all, a clamped factor": """
        def clip(grads: list[Tensor], max_norm: float) -> Tensor:
            if len(grads) == 0:
                return torch.tensor(0.0)
            norms = torch._foreach_norm(grads, 2.0)
            total = torch.linalg.vector_norm(torch.stack(norms))
            factor = torch.clamp(max_norm / (total + 1e-6), max=1.0)
            torch._foreach_mul_(grads, factor)
            return total
        """,
    "an optional check for a finite norm": """
        def clip(grads: list[Tensor], max_norm: float, error_if_nonfinite: bool = False) -> Tensor:
            total = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads, 2.0)))
            if error_if_nonfinite and torch.logical_or(total.isnan(), total.isinf()):  # TPF301
                raise RuntimeError("the gradients' norm is not finite")
            return total
        """,
}


@table(CLIPPING)
def test_gradient_clipping(code: str) -> None:
    check(code)
