"""What wraps a module or a function answers as what it wraps."""

import pytest
from linting import ALL, check, table

MODEL = """
import functools
import accelerate
import deepspeed
import lightning
from peft import get_peft_model
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 3)

    def forward(self, x, y):
        logits = self.head(x)
        return logits, F.cross_entropy(logits, y)

    def score(self, x):
        return None, self.head(x).mean()

class Keeps(nn.Module):
    def __init__(self, scale, inner):
        super().__init__()
        self.scale = scale
        self.inner = inner

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)

class Hands(Keeps):
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

class OwnParallel(DDP):
    def extra(self):
        return 1

class Caller:
    def __init__(self, model):
        self.model = model

    def __call__(self, x, y):
        return self.model(x, y)

def loss_of(model, x, y):
    return None, F.cross_entropy(x, y)
"""
WAYS = {
    "DistributedDataParallel": "m = DDP(Net())",
    "devices named": "m = Net().cuda()\n    m = DDP(m, device_ids=[0])",
    "by its keyword": "m = DDP(device_ids=[0], module=Net())",
    "where a flag asks for it": "m = Net()\n    if flag:\n        m = DDP(m)",
    "DataParallel": 'm = nn.DataParallel(Net().to("cuda"))',
    "FullyShardedDataParallel": "m = FullyShardedDataParallel(Net(), sharding_strategy=None)",
    "fully_shard": "m = fully_shard(Net())",
    "torch.compile": "m = torch.compile(Net())",
    "torch.compile with options": 'm = torch.compile(mode="max-autotune")(Net())',
    "both": "m = DDP(torch.compile(Net()))",
    "torch.jit.script": "m = torch.jit.script(Net())",
    "torch.jit.trace": "m = torch.jit.trace(Net(), (torch.ones(3), torch.ones(3)))",
    "synchronised batch norm": "m = nn.SyncBatchNorm.convert_sync_batchnorm(Net())",
    "an average of weights": "m = torch.optim.swa_utils.AveragedModel(Net())",
    "deepspeed": "m, _, _, _ = deepspeed.initialize(args=None, model=Net())",
    "one class of one's own": "m = Keeps(1.0, Net())",
    "two classes of one's own": "m = Caller(Keeps(2.0, inner=Net()))",
    "what is called": "m = Caller(Net())",
    "a subclass of a wrapper": "m = OwnParallel(Net())",
    "a part of a wrapper": "m = functools.partial(DDP, device_ids=[0])(Net())",
    "a part of a function": "m = functools.partial(loss_of, Net())",
    "a compiled function": "m = torch.compile(functools.partial(loss_of, Net()))",
    "a module that moved": 'm = Net()\n    m = m.to("cuda")',
    "a module moved where it is made": "m = Net().cuda().train().half().requires_grad_(True)",
    "fabric": "fabric = lightning.Fabric()\n    m, opt = fabric.setup(Net(), flag)",
    "fabric, alone": "fabric = lightning.Fabric()\n    m = fabric.setup(Net())",
    "accelerate": "m, opt, _ = accelerate.Accelerator().prepare(Net(), flag, loader)",
    "accelerate, alone": "m = accelerate.Accelerator().prepare(Net())",
    "accelerate, unwrapped": "m = accelerate.Accelerator().unwrap_model(DDP(Net()))",
    "what takes its name": "m = Net()\n    m = get_peft_model(m, flag)",
    "what takes its name, with others": "m = Net()\n    m, opt = flag.setup(m, flag)",
    "inside": "m = DDP(Net()).module",
    "inside, where it is asked for": (
        "m = Net()\n    if flag:\n        m = DDP(m)\n"
        '    m = m.module if isinstance(m, DDP) else m\n    m = getattr(m, "module", m)'
    ),
    "inside what is compiled": "m = torch.compile(Net())._orig_mod",
}
NOT_ITS_NAME = {
    "another name": "net = Net()\n    m = flag.run(net)",
    "a call of something else": "m = flag.run()",
}


def _trained(way: str, finding: str) -> str:
    return f"""{MODEL}
def train(loader, flag):
    {way}
    for x, y in loader:
        logits, loss = m(x, y)
        print(loss.item()){finding}
"""


@pytest.mark.parametrize("way", list(WAYS.values()), ids=list(WAYS))
def test_the_module_inside_tells_what_a_call_gives(way: str) -> None:
    check(_trained(way, "  # TPF101"))


@pytest.mark.parametrize("way", list(NOT_ITS_NAME.values()), ids=list(NOT_ITS_NAME))
def test_of_any_other_call_nothing_is_told(way: str) -> None:
    check(_trained(way, ""), ALL)


PLACES = {
    "a name of the module": """
        model = Net()
        if flag:
            model = torch.compile(model)
        model = DDP(model, device_ids=[0])

        def evaluate(loader):
            losses = torch.zeros(200)
            for k, (x, y) in enumerate(loader):
                logits, loss = model(x, y)
                losses[k] = loss.item()  # TPF101
            return losses
        """,
    "an attribute": """
        class Trainer:
            def __init__(self, parallel):
                self.model = Net()
                if parallel:
                    self.model = DDP(self.model)

            def step(self, x, y):
                logits, loss = self.model(x, y)
                return loss.item()  # TPF101
        """,
    "an annotated accelerator": """
        def train(loader, accelerator: accelerate.Accelerator):
            net = accelerator.prepare(Net())
            for x, y in loader:
                logits, loss = net(x, y)
                print(loss.item())  # TPF101
        """,
    "an attribute that a wrapper hands on": """
        def evaluate(loader):
            net = Hands(1.0, Net())
            for x, y in loader:
                print(net.score(x)[1].item())  # TPF101
        """,
    "a block that is checkpointed": """
        from torch.utils.checkpoint import checkpoint

        class Block(nn.Module):
            def inner(self, x, y):
                return x, F.cross_entropy(x, y)

            def forward(self, x, y):
                x, loss = checkpoint(self.inner, x, y, use_reentrant=False)
                print(loss.item())  # TPF101
                return x
        """,
    "what wraps itself in each round": """
        def train(loader):
            net = Net()
            for _ in range(9):
                net = Keeps(1.0, net)
            for x, y in loader:
                print(net(x, y))
        """,
    "numbers stay numbers": """
        class Host(nn.Module):
            def forward(self, x):
                return [1.0, 2.0], x.detach().cpu().numpy()

        def evaluate(loader):
            net = DDP(torch.compile(Host()))
            for x, y in loader:
                numbers, array = net(x)
                print(float(numbers[0]), array.item(), float(array.mean()))
        """,
}


@table(PLACES)
def test_wherever_it_is_wrapped(code: str) -> None:
    lines = [line.removeprefix(" " * 8) for line in code.splitlines()]
    check(MODEL + "\n".join(lines), only=frozenset(("TPF101",)))
