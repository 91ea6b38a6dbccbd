"""Objects of unknown class that are moved or put into a mode, and called: they are modules."""

from __future__ import annotations

from dataclasses import replace

from linting import ALL, check, findings, program, table

# A library that the linter knows nothing of; with numpy, `.item()` alone tells nothing.
PRELUDE = "import numpy as np\nimport torch\nfrom torch import Tensor, nn\nimport lpips\n"
READS = frozenset(("TPF101", "TPF102", "TPF301"))


@table(
    {
        "made and moved outside functions": """
        alex = lpips.LPIPS(net="alex").cuda()

        def score(x: Tensor, y: Tensor):
            return alex(x, y, normalize=True).item()  # TPF101
        """,
        "moved in a statement, below a test": """
        net = lpips.load()
        if torch.cuda.is_available():
            net.to("cuda:0")

        def score(x: Tensor):
            return net(x).item()  # TPF101
        """,
        "a parameter that is put into a mode": """
        def evaluate(model, x: Tensor):
            model.eval()
            return model(x).argmax(dim=-1).tolist()  # TPF102
        """,
        "put into a mode and moved, in one expression": """
        def score(x: Tensor, device):
            net = lpips.LPIPS().eval().to(device)
            net.train(False)
            distance = net(x)
            return distance.mean().item()  # TPF101
        """,
        "an attribute that another method moves": """
        class Metric:
            def __init__(self, device):
                self.net = lpips.LPIPS()
                self.net = self.net.to(device=device)

            def score(self, x: Tensor):
                if self.net(x).max() > 1:  # TPF301
                    return 1
                return self.net(x).item()  # TPF101
        """,
        "an attribute that a class above moves": """
        class Base:
            def setup(self):
                self.net.cuda()

        class Metric(Base):
            def score(self, x: Tensor):
                return self.net(x).item()  # TPF101
        """,
        "a name of the function around": """
        def scorer(device):
            net = lpips.LPIPS().to(device)

            def score(x: Tensor):
                return net(x).item()  # TPF101

            return score
        """,
        "called where it is moved": """
        def score(x: Tensor, device):
            return lpips.LPIPS().to(device)(x).item()  # TPF101
        """,
    }
)
def test_what_is_moved_and_called_is_a_module(code: str) -> None:
    check(code, ALL, prelude=PRELUDE, only=READS)


@table(
    {
        "neither moved nor put into a mode": """
        net = lpips.LPIPS()

        def score(x: Tensor):
            return np.abs(net(x).item())
        """,
        "a processor, whose batch is moved": """
        processor = lpips.Processor.from_pretrained("base")

        def read(images: Tensor):
            inputs = processor(images).to("cuda")
            return processor(images).item(), inputs["a"].item()
        """,
        "a pipeline of text": """
        pipe = lpips.Pipeline.from_pretrained("base").to("cuda")

        def draw(prompts):
            for prompt in prompts:
                image = pipe(prompt).images[0]
                print(image.item(), pipe(prompt, steps=3).item())
        """,
        "a pipeline of images, whose result is an object": """
        pipe = lpips.Pipeline.from_pretrained("base").to("cuda")

        def draw(image: Tensor):
            out = pipe(image)
            print(out.images[0].item(), pipe(image).images.item(), out.loss.tolist())
            for row in out:
                print(row)
            if out:
                return out.pop()
        """,
        "given tensors in a dict or a list alone": """
        pipe = lpips.Pipeline().to(torch.device("cuda"))

        def run(wave: Tensor):
            return pipe({"waveform": wave}).item(), pipe([wave]).item(), pipe().item()
        """,
        "moved to the host": """
        net = lpips.LPIPS().to("cpu")
        other = lpips.LPIPS().eval().cpu()

        def score(x: Tensor):
            return net(x).item(), other(x).item(), net.to("cpu")(x).item()
        """,
        "given what lies on the host": """
        net = lpips.LPIPS().eval()

        def score(x: Tensor):
            x = x.cpu()  # TPF102
            return net(x).item()
        """,
        "cast to a dtype": """
        make = lpips.make().to(torch.float16)
        other = lpips.make().to(lpips.half)

        def score(x: Tensor):
            return make(x).item(), other(x).item()
        """,
        "another object of the same name": """
        net = lpips.LPIPS().cuda()

        def score(x: Tensor, net):
            return net(x).item()

        def distance(x: Tensor):
            net = lpips.build()
            return net(x).item()
        """,
        "a trainer that is given its data": """
        def fit(trainer, data, x: Tensor):
            trainer.train(data)
            return trainer(x).item()
        """,
        "a function of the project": """
        def make(x: Tensor) -> int:
            return 1

        make.eval()

        def score(x: Tensor):
            return make(x).item()
        """,
    }
)
def test_what_is_no_module(code: str) -> None:
    check(code, ALL, prelude=PRELUDE, only=READS)


def test_modules_of_the_project_give_what_they_return() -> None:
    check(
        """
        class Counting(nn.Module):
            def forward(self, x: Tensor):
                return x.tolist()  # TPF102

        counting = Counting().cuda().eval()

        def score(x: Tensor):
            return counting(x).item()
        """,
        ALL,
        prelude=PRELUDE,
        only=READS,
    )


def test_a_loop_that_calls_such_a_module_runs_over_steps() -> None:
    check(
        """
        net = lpips.LPIPS().cuda()

        def score(pairs):
            for x in pairs:
                net(torch.exp(x)).item()  # TPF101
        """,
        prelude=PRELUDE,
        only=READS,
    )


def test_the_reason_says_why_it_is_a_module() -> None:
    code = """
        def evaluate(model, x: Tensor):
            model.eval()
            return model(x).item()
    """
    (told,) = findings(program(code, PRELUDE), replace(ALL, explain=True))
    assert "output of a module, as what is called is moved or put into a mode" in told
