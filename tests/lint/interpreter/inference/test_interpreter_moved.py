"""What is brought to a device: tensors and modules are, so what else is done with it tells."""

from __future__ import annotations

from dataclasses import replace

from linting import ALL, check, findings, program, table

# Where arrays are spoken of, an index of several parts alone tells nothing.
WITH_NUMPY = "import numpy as np\nimport torch\nfrom torch import nn\n"


@table(
    {
        "moved, then indexed over several dimensions": """
        def f(y, device):
            y = y.to(device)
            return y[:, 0].tolist()  # TPF102
        """,
        "moved under a condition": """
        def f(loader, device, cuda):
            for x, y in loader:
                if cuda:
                    y = y.to(device)
                found = y[:, 1:]
                print(found.tolist())  # TPF102
        """,
        "indexed before it is moved": """
        def f(y, device):
            first = y[0, :]
            return y.to(device).tolist()  # TPF102
        """,
        "moved, then computed with in place": """
        def f(x, args):
            x = x.to(args.device)
            x /= 255
            return x.tolist()  # TPF102
        """,
        "by a keyword, and by cuda": """
        def f(x, y, where):
            x = x.to(device=where)
            x[0, :] = 1
            y = y.cuda()
            y[0, :] = 1
            print(x.tolist())  # TPF102
            x = torch.exp(x)
            return y.tolist()  # TPF102
        """,
        "copied to the host, then asked for its shape": """
        def f(outputs):
            logits = outputs.pop("logits")
            logits = logits.cpu()  # TPF102
            return [logits[i] for i in range(logits.shape[0])]
        """,
        "its elements are tensors": """
        def f(x, y, device):
            x = x.to(device)
            return torch.equal(x[0], y), x.max().item()  # TPF101, TPF105
        """,
        "an array is not moved": """
        def f(y):
            y /= 255
            return y[:, 0].tolist()
        """,
        "a module is not indexed so": """
        def f(net, device):
            net = net.to(device)
            return net[0], net[1:], net.tolist()
        """,
        "a unit is no device": """
        def f(y, unit):
            y = y.to(unit)
            y /= 2
            return y[:, 0].tolist()
        """,
        "asked for what no tensor has": """
        def f(boxes, device):
            boxes = boxes.to(device)
            boxes.clip_to_image()
            return boxes[:, 0].tolist()
        """,
        "another value under the same name": """
        def f(y, device, np_rows):
            y = y.to(device)
            y = np_rows()
            return y[:, 0].tolist()
        """,
        "asked for its type before": """
        def f(image, device):
            if not isinstance(image, torch.Tensor):
                image = np.asarray(image)
                print(image.tolist())
            return image
        """,
    }
)
def test_moved_values(code: str) -> None:
    check(code, ALL, prelude=WITH_NUMPY, only=frozenset(("TPF101", "TPF102", "TPF105")))


def test_the_reason_names_both_facts() -> None:
    code = """
        def f(y, device):
            y = y.to(device)
            return y[:, 0].tolist()
    """
    (told,) = findings(program(code, WITH_NUMPY), replace(ALL, explain=True))
    assert "`y`: it is brought to a device, and several of its dimensions are indexed" in told


@table(
    {
        "an item of a mapping": """
        class Agent:
            def __init__(self, **kwargs):
                self.kwargs = kwargs

            def learn(self, data):
                return torch.tensor(data).to(self.kwargs["device"])  # TPF502
        """,
        "an item of a parameter": """
        def f(data, config):
            return torch.tensor(data).to(config["train_device"])  # TPF502
        """,
        "what a call gives": """
        def f(data, accelerator):
            a = torch.tensor(data).to(accelerator.current_device())  # TPF502
            return a, torch.from_numpy(data).to(find_device())  # TPF502
        """,
        "what may be a dtype": """
        def f(data, config, other):
            a = torch.tensor(data).to(config["dtype"])
            b = torch.tensor(data).to(config["kind"])
            return a, b, torch.tensor(data).to(other), torch.tensor(data).to(find_type())
        """,
    }
)
def test_devices_by_what_they_are_called(code: str) -> None:
    check(code, ALL, only=frozenset(("TPF501", "TPF502", "TPF503")))


def test_what_is_made_anew_and_moved_is_moved_once() -> None:
    check(
        """
        class Detect(nn.Module):
            def __init__(self, n: int):
                super().__init__()
                self.grid = torch.zeros(1)
                self.other = torch.zeros(1)

            def forward(self, x: Tensor, y: Tensor):
                if self.grid.shape != x.shape:
                    self.grid = torch.ones(x.shape[0]).to(x.device)  # TPF501
                    self.other = torch.ones(x.shape[0]).to(y.device)  # TPF501
                x = x + self.grid.to(x.device)
                return x + self.other.to(x.device)  # TPF501
        """,
        only=frozenset(("TPF501",)),
    )


def test_a_counter_is_read_on_the_device_unless_it_surely_stays_on_the_host() -> None:
    check(
        """
        class Cache:
            def __init__(self, device):
                self.made = torch.tensor([0], device=device)  # TPF502
                self.moved = torch.tensor([0])

            def to(self, device):
                self.moved = self.moved.to(device)  # TPF502

            def update(self, k: Tensor, window: int):
                self.made += k.shape[-2]
                self.moved += k.shape[-2]
                return k[: self.made - window], k[: self.moved - window]  # TPF107, TPF107
        """,
        ALL,
    )


@table(
    {
        "by its indices": """
        def f(loader, model):
            for x in loader:
                x = spread(x)
                print(model(x))
                for i in range(len(x)):
                    x[i] = x[i].cpu()  # TPF102
                for one in x:
                    print(one.sum().item())
        """,
        "by its keys": """
        def f(loader, model):
            for x in loader:
                for key in x.keys():
                    x[key] = x[key].cpu()  # TPF102
                print(x["a"].sum().item())
                for _, one in x.items():
                    print(one.sum().item())
        """,
        "a list by its declaration, onto the device": """
        def f(x: list[Tensor]):
            for i, one in enumerate(x):
                x[i] = one.cuda()
            return [one.sum().item() for one in x]  # TPF101
        """,
        "only what is a tensor": """
        def f(x):
            for key in x:
                if isinstance(x[key], Tensor):
                    x[key] = x[key].cpu()  # TPF102
            return x["a"].sum().item()
        """,
        "not all of them": """
        def f(x: dict[str, Tensor], kept):
            for key in kept:
                x[key] = x[key].cpu()  # TPF102
            return x["a"].sum().item()  # TPF101
        """,
        "some keys are left out": """
        def f(x: dict[str, Tensor]):
            for key in x:
                if key != "a":
                    x[key] = x[key].cpu()  # TPF102
            return x["a"].sum().item()  # TPF101
        """,
        "a loop that may end before": """
        def f(x: dict[str, Tensor]):
            for key in x:
                if key == "a":
                    break
                x[key] = x[key].cpu()  # TPF102
            return x["b"].sum().item()  # TPF101
        """,
        "the item of another": """
        def f(x: list[Tensor], y: list[Tensor]):
            for i in range(len(x)):
                x[i] = y[i].cpu()  # TPF102
            return x[0].sum().item()  # TPF101
        """,
    }
)
def test_the_items_of_a_container_are_moved(code: str) -> None:
    check(code, ALL)
