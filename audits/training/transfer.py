"""Transfer learning: a student starts from a teacher's weights with a fresh head, and its first layers may stay frozen.

``n_frozen`` layers (counted by ``audits.models.layers``) are frozen: 0 is *fine-tuning*, where everything is trained on
the student's data; one or more is the *feature extractor* of the transfer attacks (Chen et al., Journal on
Communications 42(10), 2021; spec §1). The head always trains. Student and teacher share one architecture; data, classes
and, where the model pools adaptively (all but mlp and cnn), the size of the images may differ.

The defence of the paper's Table 4, Dropout, is a setting of the architecture (``model.settings.dropout``), so of
``build``. Dropout between frozen layers is at work while the student trains, as elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models.layers import Layer, layers_of
from audits.seeds import Purpose, derive_seed
from audits.targets.checkpoint_files import read_file
from audits.training.fit import fit
from audits.training.keeper import NEVER, Keeper
from audits.training.loop import Observer
from audits.training.recipe import Recipe
from audits.training.team import ALONE, Team

Build = Callable[[int, int], nn.Module]
"""(classes, seed) → a fresh model of the student's architecture for the student's images."""

IMAGENET_INPUT = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
TORCHVISION_INPUTS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "vgg16": IMAGENET_INPUT,
    "vgg19": IMAGENET_INPUT,
    "resnet50": IMAGENET_INPUT,
    "swin_t": IMAGENET_INPUT,
    "inception_v3": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),  # what its transform_input makes of standardised images
}
"""Architecture → mean and standard deviation for ``standardised`` with torchvision's ImageNet weights."""

LEFT_OUT = "AuxLogits."  # weights of torchvision's inception_v3 that ours does without
COUNTERS = "num_batches_tracked"  # of BatchNorm; files of old versions lack them, and nothing reads them


def train_student(
    teacher: nn.Module,
    build: Build,
    classes: int,
    n_frozen: int,
    data: TensorSet,
    recipe: Recipe,
    seed: int,
    observers: tuple[Observer, ...] = (),
    keeper: Keeper = NEVER,
    team: Team = ALONE,
) -> nn.Module:
    """Return a student of ``teacher`` trained on ``data`` (labels below ``classes``), in eval mode, on its device.

    The loop is the one of all models. The optimiser is given the trainable weights only, so that neither weight decay
    nor momentum moves a frozen one, and frozen BatchNorm keeps its statistics: weights and buffers of the first
    ``n_frozen`` layers equal the teacher's bit for bit. Equal seeds give equal students. Raises as ``student_of`` and
    ``fit`` do.
    """
    student = student_of(teacher, build, classes, n_frozen, derive_seed(seed, Purpose.INIT)).to(data.y.device)
    own = derive_seed(seed, Purpose.FIT)
    return fit(student, data, recipe, seed=own, observers=observers, keeper=keeper, team=team)


def student_of(teacher: nn.Module, build: Build, classes: int, n_frozen: int, seed: int) -> nn.Module:
    """Return an untrained student: the teacher's layers, a fresh head for ``classes``, the first ``n_frozen`` frozen.

    Layers are matched by their order, so that a Dropout more or less does not matter. The head is the one of
    ``build(classes, seed)``, also when teacher and student have equally many classes. ``teacher`` is not changed.
    Raises BadInput when ``n_frozen`` leaves nothing to train or the teacher's layers do not fit the student's.
    """
    student = build(classes, seed)
    layers = layers_of(student)
    if len(layers) < 2:
        raise BadInput("transfer: the model is a head alone, without a layer to take over; give it hidden layers")
    given, own = teacher.state_dict(), student.state_dict()
    for source, place in paired(teacher, student):
        own |= {name: given[old] for old, name in zip(source.state, place.state, strict=True)}
    student.load_state_dict(own)
    return freeze(student, n_frozen)


def paired(teacher: nn.Module, student: nn.Module) -> list[tuple[Layer, Layer]]:
    """Return the layers of both, head excepted, side by side; BadInput unless their weights have equal shapes."""
    theirs, ours = layers_of(teacher), layers_of(student)
    if len(theirs) != len(ours):
        raise BadInput(
            f"transfer: the teacher has {len(theirs)} layers, the student {len(ours)}; "
            "give both the same model.name and model.settings"
        )
    pairs = list(zip(theirs[:-1], ours[:-1], strict=True))
    for source, place in pairs:
        before, after = shapes(teacher, source), shapes(student, place)
        if before != after:
            raise BadInput(
                f"transfer: layer {source.name} has {difference(before, after)}; give both the same model.name and "
                "model.settings, and images with equally many channels and (mlp, cnn) of equal size: ?size=N scales "
                "images"
            )
    return pairs


def shapes(model: nn.Module, layer: Layer) -> list[tuple[int, ...]]:
    """Return the shapes of the layer's parameters and buffers, in order."""
    state = model.state_dict()
    return [tuple(state[name].shape) for name in layer.state]


def difference(before: list[tuple[int, ...]], after: list[tuple[int, ...]]) -> str:
    """Return in words how the shapes of a layer differ between teacher (``before``) and student."""
    for old, new in zip(before, after, strict=False):
        if old != new:
            return f"weights of shape {old} in the teacher and {new} in the student"
    return f"{len(before)} tensors in the teacher and {len(after)} in the student"


def freeze(model: nn.Module, n_frozen: int) -> nn.Module:
    """Freeze the first ``n_frozen`` layers of ``model`` in place, let all others train, and return it.

    Frozen weights take no gradient; ``audits.training.loop.train_mode`` leaves their BatchNorm in eval mode. BadInput
    unless ``n_frozen`` is 0 up to the number of layers before the head.
    """
    layers = layers_of(model)
    if not 0 <= n_frozen < len(layers):
        raise BadInput(
            f"transfer.n_frozen is {n_frozen}; allowed: 0 (fine-tune everything) to {len(layers) - 1}, since the model "
            f"has {len(layers)} layers and the last always trains"
        )
    for number, layer in enumerate(layers):
        for name in layer.parameters:
            model.get_parameter(name).requires_grad_(number >= n_frozen)
    return model


def standardised(model: nn.Module, mean: tuple[float, ...], std: tuple[float, ...]) -> nn.Module:
    """Let ``model`` read (x − mean)/std, channel by channel, in place of images x (N, C, H, W), and return it.

    torchvision's weights expect it (``TORCHVISION_INPUTS``); data and attacks keep the range [0, 1]. It is a hook, so
    that names of weights stay; copies of the model keep it, a state dict does not: ``build`` must add it.
    """
    model.register_forward_pre_hook(Standardise(mean, std))
    model.recordable = False  # type: ignore[assignment]  # the hook copies numbers to the device, which waits
    return model


class Standardise:
    """The forward hook of ``standardised``."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        self.mean, self.std = mean, std

    def __call__(self, module: nn.Module, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        """Return the inputs of the forward pass, standardised."""
        (x,) = inputs
        mean, std = (x.new_tensor(values)[:, None, None] for values in (self.mean, self.std))
        return ((x - mean) / std,)


def teacher_from(file: Path, build: Build) -> nn.Module:
    """Return a teacher with the weights of ``file``, in eval mode; it has as many classes as the file's head.

    ``file`` is a state dict, as safetensors (by its suffix) or as ``torch.save`` writes it, under our names. For vgg16,
    vgg19, resnet50, inception_v3 and swin_t these are torchvision's, so its files serve as they are, given
    ``stem: imagenet`` and, for vgg, ``norm: none`` (``batch`` for its _bn files); let ``build`` return ``standardised``
    models then. Names of resnet18 are our own. BadInput when the file cannot be read as
    weights (it is never executed), or they are not those of the model.
    """
    model, state = fitting(file, build)
    model.load_state_dict(model.state_dict() | state)
    return model.eval()


def fitting(file: Path, build: Build) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Return a model of ``build`` that the weights in ``file`` fit, and these; raises BadInput as ``teacher_from``.

    Models without numbers will do.
    """
    state = {name: value for name, value in read_weights(file).items() if not name.startswith(LEFT_OUT)}
    model = build(2, 0)
    head = f"{layers_of(model)[-1].name}.weight"
    if head in state and state[head].ndim == 2 and len(state[head]) > 2:
        model = build(len(state[head]), 0)
    own = model.state_dict()
    lacking = [name for name in own if name not in state and not name.endswith(COUNTERS)]
    unknown = [name for name in state if name not in own]
    if lacking or unknown:
        parts = [
            f"{word} {names[0]}" + (f" and {len(names) - 1} more" if names[1:] else "")
            for word, names in (("lacks", lacking), ("has the unknown", unknown))
            if names
        ]
        raise BadInput(f"weights file {file} {' and '.join(parts)}; give the model.name and model.settings it is of")
    for name, value in state.items():
        if value.shape != own[name].shape:
            raise BadInput(
                f"weights file {file}: {name} has shape {tuple(value.shape)}, in the model {tuple(own[name].shape)}; "
                "give the model.settings (width, stem) and images it is of"
            )
        if not bool(torch.isfinite(value).all()):
            raise BadInput(f"weights file {file}: {name} is not finite; take another file")
    return model, state


def read_weights(file: Path) -> dict[str, torch.Tensor]:
    """Return the state dict in ``file`` on the CPU; nothing in it is executed. BadInput when there is none."""
    found = read_file(file, f"weights file {file}")
    if not isinstance(found, dict) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise BadInput(f"weights file {file} holds no state dict; save model.state_dict() and give that file")
    return {str(name): value for name, value in found.items()}
