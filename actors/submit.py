"""Commands as jobs of a Ray cluster, through its job server (plain HTTP on the head's dashboard port)."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from actors.cluster import SOURCE_PACKAGES
from actors.environment import QUIET, environment
from audits.errors import BadInput
from audits.extras import command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ray.job_submission import JobSubmissionClient

ADDRESS = "http://127.0.0.1:8265"
LOOK_EVERY = 1.0
RECONNECTS = 5
NOT_OURS = {"RAY_ADDRESS": None, "RAY_API_SERVER_ADDRESS": None}
"""Ray lets these win over the address that it is given."""
TALKERS = (
    "ray.dashboard.modules.dashboard_sdk",
    "ray.dashboard.modules.job.sdk",
    "ray._private.runtime_env.packaging",
)


class JobServerLost(RuntimeError):
    """The job server does not answer any more; the job may well go on (one line)."""


@dataclass(frozen=True)
class Ended:
    """How a job ended: its own exit code, or None where it has none, and Ray's word on it."""

    status: str
    code: int | None
    message: str


class JobServer:
    """The job server of a cluster. Raises BadInput where none answers, or not to us."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = _connect(address)

    def submit(self, name: str, entrypoint: str, folder: Path, variables: Mapping[str, str]) -> None:
        """Start ``entrypoint`` as the job ``name`` on the head, in a copy of ``folder``, with ``variables`` set."""
        surroundings = {"working_dir": str(folder), "env_vars": dict(variables)}
        with self._request():
            self._client.submit_job(entrypoint=entrypoint, submission_id=name, runtime_env=surroundings)

    def follow(self, name: str, write: Callable[[str], None]) -> Ended:
        """Pass what the job prints to ``write`` as it comes; return when it has ended."""
        self.end(name)  # raises for a job that is not there
        shown, failures = 0, 0
        while True:
            try:
                shown = max(shown, asyncio.run(self._tail(name, shown, write)))
                failures = 0
            except _Broken as error:
                shown, failures = error.shown, failures + 1
                if failures > RECONNECTS:
                    raise JobServerLost(f"the job server at {self.address} is gone ({error}); job {name}") from error
            time.sleep(LOOK_EVERY)
            if (end := self.end(name)) is not None:
                return end

    def end(self, name: str) -> Ended | None:
        """Return how the job ended; None while it runs. Raises BadInput for a job that is not there."""
        with self._request(name):
            info = self._client.get_job_info(name)
        if not info.status.is_terminal():
            return None
        return Ended(str(info.status.value), info.driver_exit_code, info.message or "")

    def log(self, name: str) -> str:
        """Return all that the job has printed."""
        with self._request(name):
            return str(self._client.get_job_logs(name))

    def cancel(self, name: str) -> None:
        """Stop the job: its process is told to end, and killed if it does not."""
        with self._request(name):
            self._client.stop_job(name)

    async def _tail(self, name: str, skip: int, write: Callable[[str], None]) -> int:
        """Write the log from character ``skip`` on, and return its length when the server has no more."""
        import aiohttp

        seen = 0
        try:
            async for text in self._client.tail_job_logs(name):
                if new := text[max(0, skip - seen) :]:
                    write(new)
                seen += len(text)
        except (OSError, RuntimeError, aiohttp.ClientError) as error:
            raise _Broken(error, max(seen, skip)) from error
        return seen

    @contextmanager
    def _request(self, name: str = "") -> Iterator[None]:
        """Turn what goes wrong in one request into one line."""
        try:
            yield
        except OSError as error:  # requests' errors are of this kind
            raise JobServerLost(f"the job server at {self.address} does not answer: {_first_line(error)}") from error
        except RuntimeError as error:
            if name and "404" in str(error):
                raise BadInput(f"no job {name!r} at {self.address}; see `ray job list`") from error
            raise


class _Broken(Exception):
    """The connection over which a log came broke after ``shown`` characters."""

    def __init__(self, error: Exception, shown: int) -> None:
        super().__init__(_first_line(error))
        self.shown = shown


def source_folders() -> list[Path]:
    """Return the packages that must travel with a job: those of a checkout, none where orch is installed."""
    root = Path(__file__).resolve().parent.parent
    if root.name in ("site-packages", "dist-packages"):
        return []
    return [root / name for name in SOURCE_PACKAGES if (root / name).is_dir()]


def require_form(address: str) -> None:
    """Raise BadInput for an address that can be no job server's; nobody is asked."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"address {address!r}: give that of the head's dashboard, such as {ADDRESS}")


def _connect(address: str) -> JobSubmissionClient:
    require_form(address)
    quiet: dict[str, str | None] = {**QUIET, **NOT_OURS}
    with environment(quiet):
        from ray.exceptions import AuthenticationError
        from ray.job_submission import JobSubmissionClient

        for talker in TALKERS:
            logging.getLogger(talker).setLevel(logging.ERROR)
        try:
            return JobSubmissionClient(address, headers=_authorisation())
        except AuthenticationError as error:
            raise BadInput(
                f"the job server at {address} refuses the token; put the cluster's into "
                "~/.ray/auth_token or RAY_AUTH_TOKEN"
            ) from error
        except OSError as error:
            raise BadInput(
                f"no job server answers at {address}; forward the head's (`ray dashboard cluster.yaml`); "
                f"on the head it needs {command('ray')}"
            ) from error
        except RuntimeError as error:
            if "ray[default]" in str(error):
                raise BadInput(f"jobs need parts of Ray that are not installed: {command('ray')}") from error
            raise BadInput(f"{address} is no job server of Ray: {_first_line(error)}") from error


def _authorisation() -> dict[str, str]:
    """Return the header with the token that this user has; Ray's own client sends it only with RAY_AUTH_MODE=token."""
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return {}
    token = os.environ.get("RAY_AUTH_TOKEN", "")
    file = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    if not token and file.is_file():
        token = file.read_text(encoding="utf-8").strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _first_line(error: Any) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]
