"""Train a small language model: `python -m plain_project.train`."""

import argparse
from functools import partial

import torch

from .checkpoint import Checkpointer
from .checks import check_weights, validate
from .data import make_loader
from .ema import EMA
from .evaluate import evaluate
from .generate import generate
from .losses import compute, masked_loss
from .meters import AverageMeter, History, MetricLogger, PeakMeter
from .metrics import accuracy
from .model import Model, count_parameters
from .viewer import attention_picture


def train_one_epoch(model, criterion, loader, optimizer, ema, history, device):
    """One pass over the loader."""
    model.train()
    logger = MetricLogger()
    top1, peak = AverageMeter(), PeakMeter()
    aux_sum = 0.0
    for words, labels in loader:
        words = words.to(device)
        labels = labels.to(device)
        result = compute(model, criterion, words, labels)
        total = result.loss + 0.1 * result.aux
        validate(total, reject=torch.isnan)

        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        ema.update(model)

        acc1, acc5 = accuracy(result.logits, labels, topk=(1, 5))
        top1.update(acc1, len(words))
        peak.update(result.loss.detach())
        history.add("total", total.detach())
        logger.update(loss=result.loss, acc5=acc5)
        aux_sum += result.aux
    print(logger.line(), f"top1 {top1.avg:.3f}, peak {peak.peak:.3f}, aux {aux_sum:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--output", default="model.pt")
    parser.add_argument("--picture")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device(args.device)
    loader = make_loader(64, 8, seed=1)
    held_out = make_loader(16, 8, seed=2)
    model = Model().to(device)
    count, norm = count_parameters(model)
    print(f"{count} parameters of norm {norm:.2f}")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    criterion = partial(masked_loss, smoothing=0.1)
    ema = EMA(model)
    history = History()
    checkpointer = Checkpointer(args.output)
    for epoch in range(args.epochs):
        train_one_epoch(model, criterion, loader, optimizer, ema, history, device)
        check_weights(model)
        loss, perplexity, right = evaluate(model, criterion, held_out, device)
        print(f"epoch {epoch}: {loss:.3f} {perplexity:.2f} {right:.3f} {ema.distance(model):.3f}")
        checkpointer.save(model, loss)
    print(generate(model, torch.tensor([[3]], device=device), 8))
    if args.picture:
        words, _ = next(iter(held_out))
        attention_picture(model, words.to(device), args.picture)


if __name__ == "__main__":
    main()
