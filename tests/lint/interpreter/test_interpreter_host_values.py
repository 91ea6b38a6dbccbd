"""Values that are on the host already: reading them waits for nothing, so nothing is said."""

from linting import ALL, check, table

SILENT = {
    "numpy": """
        def step(n: int):
            x = np.zeros(n)
            y = np.random.rand(3, 4).mean(axis=0)
            if x.max() > 0 or (y > 0).all():
                return x.tolist(), float(y[0]), [v.item() for v in y]
            assert np.allclose(x, 0)
            return np.asarray(y), max(y), sorted(y), f"{y}"
        """,
    "shapes and sizes": """
        def step(x: Tensor, y: Tensor):
            n, m = x.shape
            if x.shape[0] > 3 and x.size(1) == m or x.size() != y.shape or len(x) < n:
                return float(x.numel()), int(x.dim()), max(x.shape), x.ndim
            if x.nelement() and x.element_size() > 2 and x.stride(0) == 1:
                return math.sqrt(x.shape[-1]), math.prod(x.shape), f"{x.shape} {x.numel()}"
            return [i for i in range(x.size(0)) if i > x.shape[1]], x[: y.shape[0]], x[m - 1 :]
        """,
    "a counter that stays where it is made": """
        class Cache:
            def __init__(self):
                self.length = torch.tensor([0], dtype=int)

            def step(self, k: Tensor, window: int):
                self.length += k.shape[-2]
                return k[..., : self.length - window]
        """,
    "numbers alone make a tensor on the host": """
        def step(x: Tensor, n: int):
            h, w = x.shape
            if torch.div(h, n, rounding_mode="floor") > 3:
                return int(torch.div(h, 2)), x[: torch.div(w, n)]
            return float(torch.true_divide(w, 2)), torch.div(h, 2).item()
        """,
    "what a tensor is, rather than holds": """
        def step(x: Tensor, y: Tensor):
            if x.device == y.device and x.dtype == y.dtype and x.is_cuda and not x.requires_grad:
                return x.is_contiguous() or x.is_sparse or x.device.type == "cuda"
            print(x.shape, x.dtype, x.device, f"{x.dtype}")
            if x is y or x is not None or id(x) == id(y) or x.data_ptr() == y.data_ptr():
                return x.is_floating_point(), x.grad_fn is None, hash(x), type(x)
        """,
    "views as attributes of what is on the host": """
        def step(n: int, names: list[str]):
            x = torch.arange(n).reshape(3, -1)
            for row in x.T:
                if row.any():
                    return [names[i] for i in row], x.mT.tolist(), x.real.sum().item()
            return names
        """,
    "what only another tensor on the host can be added to": """
        def step(n: int, names: list[str], offset, start):
            x = torch.randint(n, 2 * n, size=(1,))
            y = torch.arange(n)
            if x - offset > start or (offset + y).any():
                return names[x + offset]
            return (torch.ones(2, n) * offset).tolist(), torch.rand([n]) - start
        """,
    "objects of Python's with methods that tensors have": """
        import decimal, socket, weakref
        from decimal import Decimal

        class Pool:
            def __init__(self, folder):
                self._finalizer = weakref.finalize(self, folder.close)

            def step(self, a: str, b: str):
                port = socket.socket().detach()
                while port < 50:
                    port = port + 1
                if self._finalizer.detach():
                    return port
                return float((Decimal(a) ** 2 + decimal.Decimal(b) ** 2).sqrt())
        """,
    "functions of an array module that is handed in": """
        class Checks:
            def __init__(self, xp):
                self.xp = xp

            def step(self, values, xp):
                if self.xp.isnan(values) or xp.isnan(values):
                    return xp.tolist(values, 1)
                return values
        """,
    "math of floats": """
        def step(x: Tensor, lr: float, n: int):
            a = math.sqrt(lr) + math.log(n) * 2
            if a > 3 and round(a) > int(a):
                return x * a
            return max(a, lr, 1.0) * x / float(n)
        """,
    "elements of tolist": """
        def step(x: Tensor):
            values = x.tolist()  # TPF102
            for v in values:
                if v > 0:
                    print(v, float(v))
            return max(values), sum(values), values[0] > 1, x[: values[0]]
        """,
    "a copy on the host": """
        def step(x: Tensor):
            y = x.cpu()  # TPF102
            if y.sum() > 0:
                return y.item(), y.tolist(), y.numpy(), [float(v) for v in y], f"{y}"
            assert y.any()
            return torch.equal(y, y), y[y > 0], max(y)
        """,
    "a copy on the host by to": """
        def step(x: Tensor):
            a = x.to("cpu")  # TPF102
            b = x.to(torch.device("cpu"))  # TPF102
            c = x.to(device="cpu")  # TPF102
            return a.item() + b.item() + c.sum().item()
        """,
    "a number that was read": """
        def step(x: Tensor):
            v = x.item()  # TPF101
            if v > 0 and not math.isnan(v):
                print(v, f"{v:.3f}")
                return float(v), int(v), round(v), max(v, 0.0), x * v, torch.arange(v)
            return bool(v)
        """,
    "made on the host": """
        def step(n: int, p: float):
            x = torch.zeros(n, device="cpu")
            y = torch.randperm(n, device=torch.device("cpu"))
            if x.sum() > 0:
                return x.tolist(), y.tolist(), x.item()
            return [int(i) for i in y]
        """,
    "a random number of the host": """
        def step(x: Tensor, p: float):
            if torch.rand([]) < p:
                return x * 2
            if torch.rand(1) < p or torch.rand(1).item() < p:
                return x * 3
            return x
        """,
    "a random integer of the host": """
        def step(x: Tensor, n: int):
            i = torch.randint(0, n, (1,)).item()
            j = int(torch.randint(n, ()))
            order = torch.randperm(n).tolist()
            return x[:, i] + x[:, j] + x[:, order[0]]
        """,
    "a tensor of Python numbers": """
        def step(sizes: list[int]):
            t = torch.tensor(sizes)
            if t.sum() > 3:
                return t.tolist(), t.max().item()
            return torch.as_tensor(sizes).sum().item()
        """,
    "from numpy": """
        def step(a: np.ndarray):
            t = torch.from_numpy(a)
            if t.any():
                return t.tolist(), t.sum().item()
        """,
    "a generator's state": """
        def step():
            return torch.get_rng_state().tolist(), torch.cuda.get_rng_state().tolist()
        """,
    "a seed": """
        def step(n: int):
            return torch.initial_seed() % n, int(torch.empty((), dtype=torch.int64).random_().item())
        """,
    "batches of a loader": """
        from torch.utils.data import DataLoader

        def train_epoch(loader: DataLoader, model: nn.Module):
            for batch in loader:
                if (batch["mask"] > 0).any():
                    continue
                print(batch["y"].sum().item())
            for x, y in loader:
                y.tolist()
        """,
    "an optimizer's numbers": """
        class Mine(torch.optim.Optimizer):
            def step(self):
                for group in self.param_groups:
                    if group["lr"] > 0 and group["weight_decay"] != 0:
                        print(float(group["lr"]), group["lr"])
        """,
    "a step count kept on the host": """
        def step(step_t: Tensor, p: Tensor):
            count = torch.tensor(0.0)
            count += 1
            return p * count.item()
        """,
    "packed lengths": """
        from torch.nn.utils.rnn import PackedSequence

        def step(packed: PackedSequence):
            sizes = packed.batch_sizes
            return int(sizes[0]), sizes.tolist()
        """,
    "dtypes' limits": """
        def step(x: Tensor):
            info = torch.finfo(x.dtype)
            if info.max > 3 and torch.iinfo(torch.int32).min < 0:
                return x.clamp(min=float(info.min), max=info.max)
        """,
    "questions to the library": """
        def step(x: Tensor):
            if torch.cuda.is_available() and torch.is_grad_enabled() and torch.cuda.device_count() > 1:
                return torch.cuda.memory_allocated() / 2, torch.get_default_dtype()
            if torch.is_autocast_enabled() or torch.backends.cudnn.enabled or torch.__version__ > "2":
                return x
        """,
    "module flags": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                if self.training and len(list(self.parameters())) > 3:
                    return sum(p.numel() for p in self.parameters() if p.requires_grad)
                return [n for n, p in self.named_parameters() if p.dim() > 1 and "bias" not in n]
        """,
    "the scaler's own scale": """
        def step(scaler: torch.amp.GradScaler):
            return scaler.is_enabled()
        """,
    "streams and events that do not wait for the host": """
        def step(s: torch.cuda.Stream, e: torch.cuda.Event):
            s.wait_stream(torch.cuda.current_stream())
            e.record()
            e.wait()
            s.wait_event(e)
            if e.query():
                return e.elapsed_time(e)
        """,
    "meta tensors have no values to wait for": """
        def step(n: int):
            return torch.empty(n, device="meta").shape
        """,
    "strings and lists of them": """
        def step(names: list[str], x: Tensor):
            if "a" in names and names[0] > "b" and not names:
                return sorted(names), max(names, key=len), str(names), " ".join(names)
            return [n for n in names if n]
        """,
}


@table(SILENT)
def test_host_values_are_silent(code: str) -> None:
    check(code)


MOVED = {
    "to a device that another module tells": """
        from somewhere import types_of

        def step(n: int):
            dtype, device = types_of(n)
            x = torch.zeros(n).to(dtype=torch.float64, device=device)  # TPF501
            return x.sum().item()  # TPF101
        """,
    "to where tensors are put by default": """
        def step(n: int):
            device = torch.empty(0).device
            x = torch.zeros(n).to(device)  # TPF501
            return x.sum().item()  # TPF101
        """,
    "a host tensor moved to the device": """
        def step(n: int):
            x = torch.arange(n, device="cpu").cuda()
            return x.sum().item()  # TPF101
        """,
    "a batch moved to the device": """
        from torch.utils.data import DataLoader

        def train_epoch(loader: DataLoader, device: torch.device):
            for x, y in loader:
                x = x.to(device)  # TPF503
                x.sum().item()  # TPF101
        """,
    "made on the device": """
        def step(n: int, device: torch.device):
            x = torch.zeros(n, device="cuda")
            y = torch.ones(n, device=device)
            return x.item() + y.item()  # TPF101, TPF101
        """,
    "made like a tensor that may be on the device": """
        def step(x: Tensor):
            y = torch.zeros_like(x)
            z = x.new_zeros(3)
            return y.sum().item() + z.sum().item()  # TPF101, TPF101
        """,
    "a host scalar with a device tensor": """
        def step(x: Tensor):
            y = torch.tensor(2.0) * x
            return y.sum().item()  # TPF101
        """,
    "the host copy does not change the original": """
        def step(x: Tensor):
            y = x.cpu()  # TPF102
            return y.item() + x.sum().item()  # TPF101
        """,
    "a second copy is free": """
        def step(x: Tensor):
            y = x.cpu()  # TPF102
            return y.cpu().numpy()
        """,
    "only a host branch is silent": """
        def step(x: Tensor):
            if x.device.type == "cpu":
                return x.item()
            return x.item()  # TPF101
        """,
}


@table(MOVED)
def test_what_brings_a_value_to_the_device(code: str) -> None:
    check(code)


def test_what_numpy_only_asks_for_its_shape_is_not_copied() -> None:
    check(
        """
        def f(x: Tensor):
            n, rank, shape = np.size(x), np.ndim(x), np.shape(x)
            return np.mean(x) + n  # TPF102
        """,
        ALL,
    )


def test_a_library_that_is_chosen_by_what_it_is_given() -> None:
    check(
        """
        def f(x, flag: bool, y: Tensor):
            lib = torch if isinstance(x, Tensor) else np
            z = lib.clip(y, 0, 1)
            if flag:
                lib = np
                w = lib.floor(y)  # TPF102
            return z, np.clip(y, 0, 1)  # TPF102
        """,
        ALL,
    )


def test_what_is_loaded_to_the_host_lies_there() -> None:
    check(
        """
        def f(path, device):
            mean = torch.load(path, map_location="cpu")
            if mean.dim() == 0:
                mean = mean.item()
            there = torch.load(path, map_location=torch.device("cpu"))
            scale = torch.load(path, map_location=device)
            scale = scale.detach().item()  # TPF101
            return mean, there.detach().item(), scale
        """,
        ALL,
    )


def test_what_a_checkpoint_on_the_host_holds_lies_there_until_it_is_moved() -> None:
    check(
        """
        def compared(p, q, device):
            x = torch.load(p, map_location="cpu")
            y = torch.load(q, map_location=torch.device("cpu"), weights_only=True)
            for k, v in x.items():
                if torch.isnan(v).any():
                    print(k, v)
                print((x[k] - y[k]).abs().max().item(), torch.allclose(x[k], y[k]))
            for k in x:
                if (x[k] != y.get(k)).any():
                    print(k)
            model = x["model"]
            for v in model.values():
                if isinstance(v, Tensor) and v.sum() > 3:
                    raise ValueError(f"{v}")
            for name in model.keys():
                if model[name]["mean"].sum() > 3 or len(model[name]) > 2:
                    print(name)
            first, second = x["pair"]
            if first.any() or second:
                print(float(first))
            moved = x["weight"].to("cuda")  # TPF503
            if moved.any():  # TPF301
                print(model["bias"].cuda().sum().item())  # TPF101, TPF503
        """,
        ALL,
    )


def test_distributions_of_numbers_and_of_what_lies_on_the_host() -> None:
    check(
        """
        from torch.distributions import Beta, Categorical, Dirichlet, Independent, Normal

        def train_step(batch: Tensor, alpha: float):
            lam = torch.distributions.Beta(alpha, alpha, validate_args=False).sample().item()
            half = Normal(torch.zeros(3), 1.0)
            if half.sample((2,)).max() > 1 or half.mean.any() or half.expand((4, 3)).sample().any():
                lam = 0.0
            if Independent(half, 1).rsample()[0] > 1 or Dirichlet(torch.ones(3)).sample()[0] > 0.5:
                lam = float(half.entropy().sum())
            return batch * lam, (batch * Beta(2, 3).sample().to(batch.device)).sum().item()  # TPF101, TPF503

        def chosen(logits: Tensor, scale: float):
            if Categorical(logits=logits).sample().sum() > 3:  # TPF108, TPF301
                return Normal(0.0, logits).sample().sum().item()  # TPF101, TPF108, TPF108
            return Normal(logits.mean(), scale).mean.item()  # TPF101, TPF108
        """,
        ALL,
    )


def test_what_reads_files_and_buffers_reads_them_to_the_host() -> None:
    check(
        """
        import torchaudio
        import torchvision.transforms.functional as TF
        from safetensors.torch import load_file
        from torchvision.io import read_image

        def train_step(path, image, n: int):
            wave, rate = torchaudio.load(path)
            if wave.abs().max() > 1 or rate > 3 or read_image(path).any() or TF.to_tensor(image).any():
                return torch.frombuffer(image, dtype=torch.int8).tolist()
            if torch.signal.windows.hann(n).any():
                return {k: v.item() for k, v in load_file(path).items()}
            state = torch.load(path, map_location=lambda storage, location: storage)
            for name, weight in state.items():
                if not torch.isfinite(weight).all():
                    return name
            if torch.signal.windows.hann(n, device="cuda").any():  # TPF301
                return wave.to("cuda").sum().item()  # TPF101, TPF503
        """,
        ALL,
    )
