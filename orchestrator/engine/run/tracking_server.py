"""Reaching MLflow: quietly, with its failures as one line, and without waiting for a server that says nothing."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from audits.credentials import hide, reveal

ANSWER_SECONDS = 5.0  # in which a server must say anything at all
NOISY = ("mlflow", "alembic", "sqlalchemy", "urllib3", "git")


class TrackingFailed(RuntimeError):
    """Tracking could not be completed; the audit's own files are whole. The message is one line."""


@contextmanager
def reached(uri: str, otherwise: str, imported: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Import MLflow, call ``imported``, ask a server whether it answers, and keep MLflow quiet meanwhile.

    Whatever goes wrong with it is TrackingFailed; ``otherwise`` says what is well all the same.
    """
    with quiet_mlflow() as errors:
        imported()
        try:
            if uri.startswith("http"):
                _knock(uri)
            yield
        except errors as error:
            raise TrackingFailed(f"MLflow at {uri} failed: {_reason(error)}; {otherwise}") from error


def _knock(uri: str) -> None:
    """Ask a server for anything at all; raises requests.Timeout when it says nothing.

    No login goes along, neither that of the address nor one of ~/.netrc, and no redirect is followed.
    What else goes wrong is left to MLflow, which tries again and has settings of its own.
    """
    import requests

    try:
        requests.get(
            reveal(uri), timeout=ANSWER_SECONDS, stream=True, auth=lambda asked: asked, allow_redirects=False
        ).close()
    except requests.Timeout:
        raise
    except requests.RequestException:
        return


def _reason(error: Exception) -> str:
    """Return the cause of a failure in one short line."""
    text = hide(" ".join(str(error).split())) or type(error).__name__
    if "Max retries exceeded" in text or "Connection refused" in text or "timed out" in text:
        return "the server does not answer"
    return text if len(text) <= 200 else f"{text[:199]}…"


def settle_environment() -> None:
    """Set what MLflow reads from the environment: no telemetry, no bars, and patience in proportion.

    A logged model takes no files of the working folder along, where a link may lead to any other file.
    """
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_UV_AUTO_DETECT"] = os.environ["MLFLOW_LOG_UV_FILES"] = "false"
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")


@contextmanager
def quiet_mlflow() -> Iterator[tuple[type[Exception], ...]]:
    """Import MLflow without telemetry and with its log silenced; yield what it raises when it fails.

    What it logs as an error it raises as well, so that a database without room would be told twice, once in pages.
    """
    settle_environment()
    import mlflow  # noqa: F401  # configures its loggers, which are quietened next
    import requests
    import sqlalchemy.exc
    from mlflow.exceptions import MlflowException

    levels = {name: logging.getLogger(name).level for name in NOISY}
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # SQLAlchemy's, about MLflow's own tables
            yield MlflowException, requests.RequestException, sqlalchemy.exc.SQLAlchemyError, OSError
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
