"""What the default scope keeps quiet about, though it waits: it is wanted, or it happens once.

Each program is silent by default and reports the marked lines in scope `all`, where whoever asks
sees every wait; what only looks like one is silent in both.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import ALL, HOT, check, findings, program, table

from flake8_torchperf.linter import lint

WANTED = {
    "objects are gathered as bytes": """
        def _tensor_to_object(x: Tensor):
            return x.cpu().numpy().tobytes()  # TPF102

        def gather_object_list(sizes: list[Tensor]):
            return max(s.item() for s in sizes)  # TPF101
        """,
    "an option asks for it": """
        def step(x: Tensor, return_numpy: bool, output_type: str):
            if return_numpy:
                return x.cpu().numpy()  # TPF102
            if output_type == "np":
                return x.cpu().numpy()  # TPF102
            return x
        """,
    "an event that was recorded earlier": """
        class Offload:
            def __init__(self):
                self.event = torch.cuda.Event()

            def step(self):
                self.event.synchronize()  # TPF106
        """,
    "an array for another library": """
        def score(x: Tensor, y: Tensor):
            from pesq import pesq
            ours = x.detach().cpu().numpy()  # TPF102
            theirs = y.detach().cpu().numpy()  # TPF102
            return [pesq(8000, ours[i], theirs[i]) for i in range(3)]
        """,
    "the name says that the result is on the host": """
        def mask_to_list(x: Tensor):
            return x.tolist()  # TPF102

        def pack_to_cpu(x: Tensor):
            return x.cpu()  # TPF102

        def _tensor_to_half_val(x: Tensor):
            return [v * 2 for v in x.flatten().tolist()]  # TPF102
        """,
}


@table(WANTED)
def test_what_is_wanted(code: str) -> None:
    check(code, ALL)
    assert findings(program(code), HOT) == []


ONCE = {
    "on the first call": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                if not self.ready:
                    self.limit = x.max().item()  # TPF101
                    self.ready = True
                if not hasattr(self, "low"):
                    self.low = x.min().item()  # TPF101
                if x.shape not in self.cache:
                    self.cache[x.shape] = x.max().item()  # TPF101
                return x
        """,
    "to start the device up": """
        def warm():
            for i in range(torch.cuda.device_count()):
                _ = torch.tensor(0, device=torch.device("cuda", i))  # TPF502
        """,
    "a dataset's": """
        class Points(torch.utils.data.Dataset):
            def __getitem__(self, i: int):
                x = self.points[i]
                return [x.max().item() for x in self.points.unbind(0)]  # TPF101

            def normalise(self, x: Tensor):
                for i in range(3):
                    x = x / x.max().item()  # TPF101
                return x
        """,
    "nested in what is cold": """
        def _create_cpu_state_dict(model):
            def moved(x: Tensor):
                return x.cpu()  # TPF102
            return model._apply(moved)

        def save_checkpoint(model):
            def copied(x: Tensor):
                return x.cpu()  # TPF102
            return model._apply(copied)
        """,
    "text for a person, by the function's name": """
        def improvement_message(current: Tensor):
            return f"now {current}"  # TPF104
        """,
    "in a loop of a helper that only a module's constructor calls": """
        class Model(nn.Module):
            def __init__(self, weights):
                super().__init__()
                self.limits = self._limits(weights)

            def _limits(self, weights):
                return [w.detach().max().item() for w in weights]  # TPF101
        """,
}


@table(ONCE)
def test_what_happens_once(code: str) -> None:
    check(code, ALL)
    assert findings(program(code), HOT) == []


STILL = {
    "the loops of what a program's main function calls": """
        def train(x: Tensor, y: Tensor):
            for i in range(10):
                print((x - y).sum())  # TPF104

        def main(x: Tensor):
            train(x, x)
        """,
    "a helper called in the loop over steps": """
        class TextPipeline:
            def __call__(self, x: Tensor, steps: int):
                for i in range(steps):
                    x = self.denoise(x)
                return x

            def denoise(self, x: Tensor):
                return x / x.max().item()  # TPF101
        """,
    "the loop in which the loop over steps stands": """
        class TextPipeline:
            def __call__(self, x: Tensor, chunks: int, timesteps: list[int]):
                for chunk in range(chunks):
                    print(x)  # TPF104
                    for t in timesteps:
                        x = x * t
                        print(x)  # TPF104
                return x
        """,
    "a helper in the loop of what a program calls": """
        def train(xs: list[Tensor]):
            for x in xs:
                print(scale(x))

        def scale(x: Tensor):
            return x.max().item()  # TPF101

        def main(x: Tensor):
            train([x])
        """,
    "a tensor that is given, or made of what is given": """
        class Attention:
            def __call__(self, rotary: Tensor, other: Tensor | None = None):
                if other is not None:
                    self.turn(*other.sin())  # TPF201
                return self.turn(*rotary), rotary.detach()  # TPF201
        """,
    "tokens generated one by one": """
        class Model:
            def generate(self, x: Tensor):
                for i in range(9):
                    x = x + 1
                    if x.sum() > 3:  # TPF301
                        break
                return x
        """,
    "the number of steps is no step": """
        def step(x: Tensor, num_steps: int, step_size: int):
            if num_steps == 1:
                print(x)  # TPF104
            if step_size == 1:
                print(x)  # TPF104
            if step_size > 1 and not num_steps:
                print(x)  # TPF104
        """,
    "a flag that nothing turns": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                if not self.training:
                    self.limit = x.max().item()  # TPF101
                return x
        """,
    "an event recorded just before": """
        class Loop:
            def step(self, x: Tensor):
                self.event.record()
                self.event.synchronize()  # TPF106

            def __init__(self):
                self.event = torch.cuda.Event()

        def step():
            event = torch.cuda.Event()
            event.record()
            event.synchronize()  # TPF106
        """,
    "text made in each step": """
        def training_step(loss: Tensor):
            msg = f"loss {loss}"  # TPF104
            return msg
        """,
    "a batch first": """
        def step(x: Tensor, batch_first: bool):
            if batch_first:
                return x.item()  # TPF101
        """,
    "an array that numpy works on, of one number or in a loop": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                ours = x.mean().detach().cpu().numpy()  # TPF102
                return np.median(ours) + sum(row.cpu().numpy() for row in x)  # TPF102, TPF201
        """,
    "what a factory returns": """
        def make_hook(limit: float):
            def hook(x: Tensor):
                return x.item() > limit  # TPF101
            return hook
        """,
    "a function of the host, by a word inside its name": """
        def _amp_update_scale_cpu_(x: Tensor):
            return x.item()  # TPF101
        """,
    "a cost for another library": """
        def fit(depth: Tensor):
            def cost(param: np.ndarray, depth: Tensor) -> float:
                return (depth - param[0]).abs().mean().item()  # TPF101
            return minimize(cost)
        """,
    "text, whatever the variable is called": """
        def stopping(current: Tensor, limit: float):
            reason = f"the metric {current} passed {limit}"  # TPF104
            return reason
        """,
    "what is called before a loop that calls no model and takes no step": """
        class TextPipeline:
            def __call__(self, x: Tensor, steps: int):
                mask = self.encode_prompt(x)
                for i in range(steps):
                    x = x * mask
                return x

            def encode_prompt(self, x: Tensor):
                rows = [r[r > 0] for r in self._split(x)]  # TPF402
                if x.any():  # TPF301
                    return rows

            def _split(self, x: Tensor):
                return x.split(x.sum(1).tolist())
        """,
    "a pipeline's loop over its inputs": """
        class TextPipeline:
            def __call__(self, images: list[Tensor]):
                for image in images:
                    print(image)  # TPF104
                return images
        """,
    "before a loop in which no model is called": """
        class Model:
            def generate(self, x: Tensor):
                limit = self.longest(x)
                if x.isnan().any():  # TPF301
                    return x
                for i in range(limit):
                    x = x + 1
                return x

            def longest(self, x: Tensor):
                return x.sum(1).max().item()  # TPF101
        """,
    "in a loop of a helper that an object's constructor calls, which a step may make": """
        class Model:
            def __init__(self, weights):
                self.limits = self._limits(weights)

            def _limits(self, weights):
                return [w.detach().max().item() for w in weights]  # TPF101
        """,
    "a comparison of two tensors outside a file of tests": """
        def run(x: Tensor, y: Tensor):
            for i in range(3):
                torch.testing.assert_close(x.cpu(), y)  # TPF102
        """,
    "where a number equals one, whatever it counts": """
        class Net:
            def step(self, x: Tensor, batch_idx: int):
                if self.istep == 0:
                    self.scale = x.norm().item()  # TPF101
                if batch_idx == 1:
                    print(x)  # TPF104
                if self.state["step"] == 0:
                    print(x)  # TPF104
        """,
}


@table(STILL)
def test_what_is_hot_all_the_same(code: str) -> None:
    check(code, HOT)


NO_TENSORS = {
    "text is not in a tensor": """
        def step(group: Tensor):
            for i in range(3):
                if "params" in group:
                    return i
        """,
    "a name compared with text": """
        def step(outputs: list[Tensor], names: Tensor):
            for key in names:  # TPF201
                if key == "loss":
                    print(key)
                elif key in ("scores", "logits"):
                    print(f"{key}")
        """,
    "what only a traced run makes": """
        def step(x: Tensor):
            if torch.onnx.is_in_onnx_export():
                n = torch.tensor(x.size(0), device=x.device)
            else:
                n = x.size(0)
            for i in range(n):
                print(i)
        """,
    "an optional pair, taken apart untested": """
        class Attention(nn.Module):
            def forward(self, x: Tensor, rotary: Tensor | None = None):
                cos, sin = rotary
                turned = list(rotary)
                return x * cos + x * sin + self.turn(x, *rotary), turned
        """,
    "an optional pair, tested for None": """
        class Attention:
            def __call__(self, x: Tensor, rotary: Tensor | None = None):
                if rotary is not None:
                    x = self.turn(x, *rotary)
                    cos, sin = rotary
                    return x * cos + x * sin
                return x
        """,
    "numbers where tensors are declared": """
        class Report:
            def make(self, x: Tensor):
                labels = x.unique().cpu().tolist() if x.numel() else []
                return self._rows(labels, x.shape[0])

            def _rows(self, labels: list[Tensor], height: Tensor):
                if height > 3:
                    return []
                return [str(label) for label in labels]
        """,
    "shapes, or the tensors of which they are": """
        def step(shapes: list[tuple[int, ...]] | tuple[Tensor, ...], flat: Tensor):
            for shape in shapes:
                length = 1
                for s in shape:
                    length *= s
                flat = flat[:length]
            return flat
        """,
    "what only a traced run computes": """
        def step(x: Tensor, size: int):
            n = int(torch.ceil(x.max())) if torch.jit.is_tracing() else size
            m = torch.ceil(x.max()) if torch.jit.is_tracing() else size
            return x.reshape(m, n)
        """,
    "the state of a generator": """
        def step(generator: torch.Generator):
            state = generator.get_state()
            for other in [torch.empty_like(state) for _ in range(3)]:
                print(other.sum().item())
        """,
    "step counters under another name": """
        def step(state_steps: list[Tensor], groups: dict[str, list[list[Tensor]]]):
            for (device_state_steps, _) in groups.values():
                for s in device_state_steps:
                    print(s.item())
        """,
    "a moved batch that is used as a dict or as an object of its own": """
        from torch.utils.data import DataLoader

        def train(data, collate, model, device):
            loader = DataLoader(data, collate_fn=collate, num_workers=4, pin_memory=True)
            for batch in loader:
                batch = batch.to(device, non_blocking=True)
                if not batch:
                    continue
                for name in batch:
                    print(name, batch[name].shape)
                loss = model(**batch).loss

        def graphs(data, model, device):
            for graph in DataLoader(data, num_workers=4, pin_memory=True):
                graph = graph.to(device, non_blocking=True)
                print(f"{graph}", model(graph.x, graph.edge_index))
        """,
    "data frames and their columns, beside tensors": """
        import pandas as pd

        def train_step(df, model):
            s = df["w"]
            if s.sum() > 3:
                print(s)

        def each(table):
            for _, row in table.iterrows():
                if row["x"].sum() > 2:
                    print(row)

        def missing(column):
            values = column.to_numpy()
            return values.max() > 3 and column.isna().any() and float(column.mean())
        """,
}


@table(NO_TENSORS)
def test_what_is_no_read(code: str) -> None:
    check(code, HOT)


PLACES = {
    "gradcheck.py": "checks gradients in tests",
    "distributed/checkpoint/planner.py": "writes to disk",
    "image_processing_clip.py": "prepares data",
    "convert_weights.py": "runs once",
    "_export/example.py": "is exported",
}
HELPER = program("def scaled(x: Tensor):\n    return x.item()\n")
STEP = program(
    "class Net(nn.Module):\n    def forward(self, x: Tensor):\n        return x.item()\n"
)


def written(folder: Path, name: str, code: str) -> str:
    """The path of a module with this code, in packages all the way."""
    file = folder / name
    above = file.parent
    above.mkdir(parents=True, exist_ok=True)
    while above != folder:
        (above / "__init__.py").touch()
        above = above.parent
    file.write_text(code)
    return str(file)


@pytest.mark.parametrize("name", PLACES)
def test_places_that_are_cold(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, name, HELPER)
    assert lint(HELPER, file, HOT) == []
    assert [f.code for f in lint(HELPER, file, ALL)] == ["TPF101"]
    other = tmp_path / "model.py"
    assert [f.code for f in lint(HELPER, str(other), HOT)] == ["TPF101"]


@pytest.mark.parametrize("name", PLACES)
def test_a_step_is_hot_wherever_it_stands(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, name, STEP)
    assert [f.code for f in lint(STEP, file, HOT)] == ["TPF101"]


@pytest.mark.parametrize("name", ["model_report/detector.py", "deprecated/old.py"])
def test_places_of_which_no_convention_speaks(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, name, HELPER)
    assert [f.code for f in lint(HELPER, file, HOT)] == ["TPF101"]


def test_a_folder_of_scripts_is_called_anything(tmp_path: Path) -> None:
    file = tmp_path / "convert_and_report" / "model.py"
    file.parent.mkdir()
    code = program("def forward(x: Tensor):\n    return x.item()\n")
    file.write_text(code)
    assert [f.code for f in lint(code, str(file), HOT)] == ["TPF101"]
