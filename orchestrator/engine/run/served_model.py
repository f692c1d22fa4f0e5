"""A logged model as MLflow loads it: this file is copied into each of them, and run where one is loaded or served.

The weights are safetensors, the architecture is named in JSON; nothing is unpickled. It needs orch to be installed
there, and reaches neither Ray nor a plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel

from audits.models.base import make_model
from audits.targets.weights import read_weights, with_weights
from audits.training.loop import logits
from audits.training.transfer import TORCHVISION_INPUTS, standardised

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn


def built(described: Mapping[str, Any]) -> nn.Module:
    """Return an untrained model as ``Published.described`` says."""
    name, settings = described["model"]["name"], described["model"]["settings"]
    found = make_model(name, settings).build(tuple(described["shape"]), len(described["classes"]), 0)
    return standardised(found, *TORCHVISION_INPUTS[name]) if described["scaled"] else found


class ServedModel(PythonModel):
    """Answers points (N, …) float32, in the data's own range, by logits (N, classes) and labels (N,).

    Points are asked in the batches of an audit, on as many threads, so that answers are the same to the last bit.
    """

    def load_context(self, context: Any) -> None:
        """Build the architecture and read its weights."""
        described = json.loads(Path(context.artifacts["description"]).read_text("utf-8"))
        self.threads = int(described["threads"])
        module = built(described)
        self.model = with_weights(module, read_weights(context.artifacts["weights"], module).state)

    def predict(self, context: Any, model_input: Any, params: Any = None) -> dict[str, NDArray[Any]]:
        """Return ``logits`` and ``labels``, the first largest of each row."""
        if torch.get_num_threads() != self.threads:  # of the thread that answers: a server has several
            torch.set_num_threads(self.threads)
        points = torch.from_numpy(np.array(model_input, dtype=np.float32, order="C"))
        with torch.no_grad():
            found = logits(self.model, points).float()
        return {"logits": found.numpy(), "labels": found.argmax(1).numpy()}


set_model(ServedModel())
