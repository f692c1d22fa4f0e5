"""Losses of what a model answers."""

from __future__ import annotations

import numpy as np

from audits.signals.loss import log_loss


def test_log_loss_is_clipped():
    np.testing.assert_allclose(
        log_loss([0.0, 0.5, 1.0, np.nan]), [-np.log(1e-7), np.log(2), -np.log1p(-1e-7), np.nan], rtol=1e-9
    )
