"""Apollo's two-dimensional example (arXiv 2506.09923, Fig. 3): where unlearning moved the boundary too little, or too
far, and the paths that the search takes there.

python examples/apollo_toy2d.py [FILE.png]     # about a minute on one core
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import nn

from audits.apollo import Case, Group, Member, Questions, SearchSettings, Split, drawn_by, make_partition
from audits.data import load
from audits.models import make_model
from audits.seeds import derive_seed
from audits.training import Recipe, accuracy, train_model
from audits.unlearning import make_unlearner

SEED = 0
POINTS = 2000
SPLIT = Split(
    targets=1,
    train_size=200,
    target_pool=200,
    shadow_pool=1600,
    test_pool=200,
    forget=0.1,
    candidates_forget=20,
    candidates_unseen=20,
    shadows=16,
    offline_shadows=2,
)
LAYERS = {"hidden": (256,) * 11, "batch_norm": True}  # 12 linear layers
RECIPE = Recipe(learning_rate=1e-4, epochs=100)
ASCENT = {"learning_rate": 0.02}
SEARCH = SearchSettings(epsilon=0.03, steps=10, learning_rate=0.1)
WAYS = ("UNDER", "OVER")
COLOURS = ("#d55e00", "#0072b2")
WEDGES = ("#e9e9e9", "#f7f7f7", "#e9e9e9", "#f7f7f7")


@dataclass(frozen=True)
class Scene:
    """What the figure shows: three models, candidates with labels and paths (K, 2, T, 2), who of them is forgotten."""

    original: nn.Module
    unlearned: nn.Module
    retrained: nn.Module
    x: torch.Tensor
    y: torch.Tensor
    forgotten: np.ndarray
    paths: torch.Tensor


def play(split: Split = SPLIT, recipe: Recipe = RECIPE, search: SearchSettings = SEARCH) -> Scene:
    """Train the target and the shadows of one half, unlearn, and search from every candidate."""
    data = load(f"toy2d?points={POINTS}")
    partition = make_partition(len(data), split, SEED)
    ascent, retraining = make_unlearner("gradient_ascent", ASCENT), make_unlearner("retrain", {})

    def build(seed: int) -> nn.Module:
        return make_model("mlp", LAYERS).build(data.shape, len(data.classes), seed)

    def trained(member: Member) -> nn.Module:
        return train_model(build, data.tensors(member.train), recipe, derive_seed(SEED, "train", member.name))

    def after(method, model: nn.Module, member: Member) -> nn.Module:  # type: ignore[no-untyped-def]  # an Unlearner
        forget, retain = data.tensors(member.forget), data.tensors(member.retain)
        seed = derive_seed(SEED, "unlearn", member.name)
        return method.unlearn(model, forget, retain, seed=seed, recipe=recipe, build=build).requires_grad_(False)

    (target,), asked = partition.select("target", 0), partition.candidates[0]
    original = trained(target).requires_grad_(False)
    unlearned, retrained = after(ascent, original, target), after(retraining, original, target)
    test = data.tensors(partition.test)
    for name, model in (("original", original), ("unlearned", unlearned), ("retrained", retrained)):
        found = accuracy(model, data.tensors(target.forget)), accuracy(model, test)
        print(f"{name:10} accuracy on forgotten points {found[0]:.2f}, on test points {found[1]:.2f}")

    members = partition.select("shadow", 0, 1)
    models = [trained(member).requires_grad_(False) for member in members]
    forgetful = [after(ascent, model, member) for model, member in zip(models, members, strict=True)]
    inside = partition.membership(members, asked.ids)
    x, y = data.tensors(asked.ids).all()
    questions = Questions(x, y, asked.ids, asked.target, data.shape, data.value_range, SEED)
    trace = drawn_by(Group(models, forgetful, inside, ~inside), Case(questions, search))
    return Scene(original, unlearned, retrained, x, y, asked.forgotten, trace.inputs)


def labels(model: nn.Module, points: torch.Tensor) -> np.ndarray:
    """Return the labels (…,) of ``points`` (…, 2)."""
    with torch.no_grad():
        found = torch.cat([model(part).argmax(1) for part in points.reshape(-1, 2).split(4096)])
    return found.reshape(points.shape[:-1]).numpy()


def regions(scene: Scene, points: torch.Tensor) -> np.ndarray:
    """Return 1 where θ_u still says what θ said although θ_r does not (UNDER), 2 where θ_u alone differs (OVER).

    Outside the unit disc there are no data, and models may say what they like: 0 there.
    """
    before, now, ideal = (labels(model, points) for model in (scene.original, scene.unlearned, scene.retrained))
    found = np.where((now == before) & (ideal != before), 1, np.where((now != before) & (ideal == before), 2, 0))
    return np.where(points.norm(dim=-1).numpy() <= 1.0, found, 0)


def shown(scene: Scene, way: int) -> int:
    """Return a candidate for the figure: a forgotten one whose path spends most steps in the regions of its side."""
    steps = (regions(scene, scene.paths[:, way]) == way + 1).sum(1)
    return int(np.argmax(np.where(scene.forgotten, steps, -1)))


def draw(scene: Scene, grid: int) -> Figure:
    """Draw the map of the square, and the neighbourhood of one candidate for each direction."""
    figure = Figure(figsize=(13.5, 5.3), layout="constrained")
    panels = figure.subplots(1, 3)
    paint(panels[0], scene, (-1.1, 1.1, -1.1, 1.1), grid)
    panels[0].set_title("where unlearning left the boundary wrong\n(within the disc of the data)")
    for way, (axes, name) in enumerate(zip(panels[1:], WAYS, strict=True)):
        number = shown(scene, way)
        path = torch.cat([scene.x[number, None], scene.paths[number, way]]).numpy()
        centre, reach = path[0], 1.25 * float(np.abs(path - path[0]).max()) + 0.02
        paint(axes, scene, (centre[0] - reach, centre[0] + reach, centre[1] - reach, centre[1] + reach), grid)
        for place in (panels[0], axes):
            place.plot(*path.T, "-o", color=COLOURS[way], markersize=3, markeredgecolor="black", markeredgewidth=0.4)
        axes.plot(*centre, "*", color="black", markersize=13)
        says = labels(scene.unlearned, scene.paths[number, way]) == int(scene.y[number])
        axes.set_title(f"{name}: path of x' of one forgotten point\nθ_u says y at {says.sum()} of {len(says)} steps")
    for dash, text in (("-", "θ"), ("--", "θ_u (unlearned)"), (":", "θ_r (retrained)")):
        panels[0].plot([], [], color="black", linestyle=dash, linewidth=1, label=text)
    for colour, text in zip(COLOURS, ("UNDER: θ_u = θ ≠ θ_r", "OVER: θ_u ≠ θ = θ_r"), strict=True):
        panels[0].fill_between([], [], color=colour, alpha=0.45, label=text)
    figure.legend(loc="outside lower center", ncols=7, frameon=False)
    return figure


def paint(axes, scene: Scene, box: tuple[float, float, float, float], grid: int) -> None:  # type: ignore[no-untyped-def]  # an Axes
    """Paint regions, boundaries of the three models and candidates into a box (left, right, low, high)."""
    left, right, low, high = box
    across, up = np.meshgrid(np.linspace(left, right, grid), np.linspace(low, high, grid))
    points = torch.from_numpy(np.stack([across, up], axis=-1).astype(np.float32))
    axes.pcolormesh(across, up, labels(scene.original, points), cmap=ListedColormap(WEDGES), vmin=0, vmax=3)
    where = np.ma.masked_equal(regions(scene, points), 0)
    axes.pcolormesh(across, up, where, cmap=ListedColormap(COLOURS), vmin=1, vmax=2, alpha=0.45)
    for model, dash in ((scene.original, "solid"), (scene.unlearned, "dashed"), (scene.retrained, "dotted")):
        said = labels(model, points)
        for label in range(4):
            axes.contour(across, up, said == label, levels=[0.5], colors="black", linestyles=dash, linewidths=0.8)
    axes.add_patch(Circle((0, 0), 1.0, fill=False, color="0.6", linewidth=0.6))
    for rows, fill, name in ((scene.forgotten, "black", "forgotten"), (~scene.forgotten, "none", "unseen")):
        first = axes is axes.figure.axes[0]
        where = scene.x[torch.from_numpy(rows)].numpy().T
        axes.plot(*where, "s", color="black", markerfacecolor=fill, markersize=4, label=name if first else None)
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")


def main(file: Path = Path("apollo-toy2d.png"), scene: Scene | None = None, grid: int = 220) -> dict[str, float]:
    """Write the figure; print and return the share of the square that is UNDER and OVER."""
    torch.set_num_threads(1)
    scene = scene or play()
    draw(scene, grid).savefig(file, dpi=130)
    side = torch.linspace(-1, 1, grid)
    where = regions(scene, torch.stack(torch.meshgrid(side, side, indexing="xy"), dim=-1))
    found = {name: float((where == number + 1).mean()) for number, name in enumerate(WAYS)}
    print(f"UNDER on {found['UNDER']:.1%}, OVER on {found['OVER']:.1%} of the square; figure: {file}")
    return found


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
