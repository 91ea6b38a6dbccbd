"""How often the cost of a finding is paid, as its message says."""

from __future__ import annotations

from linting import ALL, HOT, findings, program

from flake8_torchperf.options import Options

EPOCHS = """
def gap(model: nn.Module, loader):
    return model(next(iter(loader))).sum().item()

def shown(model: nn.Module, loader):
    return f"{gap(model, loader):.3f}"

def train(model: nn.Module, optimizer, loader, epochs):
    for epoch in range(epochs):
        total = torch.zeros((), device="cuda")
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(epoch, total.item())
        print(shown(model, loader))
    print(total.max().item())
"""
SERVER = """
def serve(model: nn.Module, requests, answers):
    while True:
        text = requests.get()
        logits = model(torch.tensor(text).cuda(non_blocking=True))
        answers.put(logits.argmax().item())
"""


def costs(code: str, options: Options) -> dict[str, str]:
    """Return the words for the cost of each TPF101, by the expression that waits."""
    found = (one.partition("` waits ") for one in findings(program(code), options))
    return {
        text.partition("`")[2]: after.partition(" (")[0]
        for text, between, after in found
        if between and ".item()" in text
    }


def test_once_for_the_steps_of_an_epoch() -> None:
    assert costs(EPOCHS, ALL) == {
        "model(next(iter...).sum().item()": "per epoch",
        "total.item()": "per epoch",
        "total.max().item()": "at the end",
    }
    assert costs(EPOCHS, HOT) == {}


def test_a_round_around_the_steps_is_named_as_its_loop_names_it() -> None:
    scenes = EPOCHS.replace("for epoch in range(epochs)", "for epoch, scene in enumerate(epochs)")
    assert costs(scenes, ALL) == {
        "model(next(iter...).sum().item()": "per scene",
        "total.item()": "per scene",
        "total.max().item()": "at the end",
    }


def test_a_round_of_a_server_is_a_request() -> None:
    assert costs(SERVER, HOT) == {"logits.argmax().item()": "per request"}
