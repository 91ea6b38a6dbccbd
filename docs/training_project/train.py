"""Trains the classifier: python train.py [--epochs N] [--mixup] [--debug]."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from data import (
    CLASSES,
    FEATURES,
    class_frequencies,
    class_weights,
    describe_lengths,
    drop_events,
    make_loader,
    mixup,
    padding_mask,
)
from evaluate import evaluate, final_report, worst_examples
from logs import History, gradient_histogram, log_step, save_checkpoint
from losses import balance_penalty, classification_loss, focal_loss, margin_penalty
from metrics import RunningMean
from model import SequenceClassifier
from optim import PlateauScheduler, WeightAverage, clip_gradients, has_bad_gradient


def train_epoch(
    model: SequenceClassifier,
    loader: torch.utils.data.DataLoader,
    optimizer: torch.optim.Optimizer,
    weights: list[float],
    average: WeightAverage,
    history: History,
    options: argparse.Namespace,
) -> torch.Tensor:
    """One round over the data; returns the mean loss."""
    device = next(model.parameters()).device
    model.train()
    running = RunningMean()
    smoothed = None
    for step, (events, lengths, labels) in enumerate(loader):
        events, lengths, labels = events.to(device), lengths.to(device), labels.to(device)
        if options.mixup:
            events, _, _ = mixup(events, labels)
        if options.drop:
            events = drop_events(events, options.drop)
        logits = model(events, padding_mask(lengths))
        loss = classification_loss(logits, labels, weights)
        loss = loss + 0.1 * margin_penalty(logits, labels, margin=1.0)
        if options.focal:
            loss = loss + focal_loss(logits, labels)
        if torch.isnan(loss) or torch.isinf(loss):
            print("skipped a batch", loss)
            continue
        optimizer.zero_grad()
        loss.backward()
        norm = clip_gradients(model.parameters(), limit=5.0)
        if options.debug and has_bad_gradient(model.parameters()):
            print(gradient_histogram(model))
        optimizer.step()
        average.update(model)
        running.add(loss)
        history.record(loss=loss, top=logits.max())
        smoothed = 0.9 * (smoothed or loss.item()) + 0.1 * loss.item()
        log_step(step, loss, norm, every=8)
    print(f"smoothed loss {smoothed:.4f}, balance {balance_penalty(model.experts.load):.3f}")
    return torch.tensor(running.mean(), device=device)


def main() -> None:
    """Parse the options and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--drop", type=float, default=0.0)
    parser.add_argument("--mixup", action="store_true")
    parser.add_argument("--focal", action="store_true")
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--worst", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    training = make_loader(512, batch_size=32, seed=1, shuffle=True)
    validation = make_loader(128, batch_size=64, seed=2, shuffle=False)
    weights = class_weights(training.dataset.labels)
    print(describe_lengths(training.dataset.lengths))
    model = SequenceClassifier(FEATURES, 32, CLASSES).to(device)
    model.start_from(class_frequencies(training.dataset.labels))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    average = WeightAverage(model, decay=0.99)
    scheduler = PlateauScheduler(optimizer, patience=1)
    history = History()
    folder = Path(tempfile.mkdtemp())
    for epoch in range(options.epochs):
        loss = train_epoch(model, training, optimizer, weights, average, history, options)
        scheduler.step(loss)
        results = evaluate(model, validation, device)
        print(f"epoch {epoch}: {results}, average is {average.distance(model):.3f} away")
    print(final_report(model, validation, device))
    if options.worst:
        print(worst_examples(model, validation, options.worst))
    print(model.describe())
    save_checkpoint(folder / "last.pt", model, loss)
    history.save(folder / "history.json")


if __name__ == "__main__":
    main()
