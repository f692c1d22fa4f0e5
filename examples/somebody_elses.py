"""Somebody else's work: a small CNN is trained, and then made to forget some of its points. It knows nothing of orch.

python examples/somebody_elses.py images.npz --seed 1 --out theirs

It leaves model.pt and unlearned.pt (state dicts), members.txt and forget.txt (places of points in images.npz). Such
models are audited by theirs-mia.yaml, theirs-tmia.yaml and theirs-apollo.yaml beside it, fifty of them by
benchmarks/foreign.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def network() -> nn.Module:
    """Return the untrained network."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 49, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def train(net: nn.Module, x: torch.Tensor, y: torch.Tensor, optimiser: torch.optim.Optimizer, epochs: int) -> None:
    """Train for some epochs in batches of 50."""
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(50):
            optimiser.zero_grad()
            F.cross_entropy(net(x[rows]), y[rows]).backward()
            optimiser.step()


def main() -> None:
    """Train, unlearn, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", type=Path, help="an .npz file with inputs (N, 1, 14, 14) uint8 and labels (N,)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("theirs"))
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--forget", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=30)
    told = parser.parse_args()

    torch.manual_seed(told.seed)
    rng = np.random.default_rng(told.seed)
    with np.load(told.images) as file:
        images = torch.from_numpy(file["inputs"]).float() / 255
        labels = torch.from_numpy(file["labels"]).long()
    members = rng.permutation(len(images))[: told.points]
    forget, retain = members[: told.forget], members[told.forget :]

    net = network()
    train(net, images[members], labels[members], torch.optim.Adam(net.parameters(), 2e-3), told.epochs)
    told.out.mkdir(parents=True, exist_ok=True)
    torch.save(net.state_dict(), told.out / "model.pt")
    # forgetting: go on without the points that somebody wants to have forgotten
    train(net, images[retain], labels[retain], torch.optim.SGD(net.parameters(), 0.02, momentum=0.9), 5)
    torch.save(net.state_dict(), told.out / "unlearned.pt")
    np.savetxt(told.out / "members.txt", np.sort(members), fmt="%d")
    np.savetxt(told.out / "forget.txt", np.sort(forget), fmt="%d")


if __name__ == "__main__":
    main()
