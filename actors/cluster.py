"""Ray started or joined quietly, and only what was started shut down; how many workers to ask for."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from actors.capacity import Cluster, Node, describe
from actors.environment import QUIET, environment
from actors.head import head_left_out
from actors.interrupts import endings_kept, interrupt_held
from actors.jobs import Tell, Workers
from actors.own_cluster import own_cluster
from actors.ray_watch import say, watched
from actors.reaper import MARK, reaped
from audits.errors import BadInput
from audits.own.import_path import SAFE, SETTLED, path_of_workers
from audits.own.sources import travelling
from audits.owners import others_can_exchange
from audits.processors import usable_cpus
from audits.writing import make_folder, require_no_link

if TYPE_CHECKING:
    from ray.job_config import JobConfig

__all__ = ["connect", "describe", "run_folder", "size_workers", "usable_cpus"]

OBJECT_STORE_BYTES = 256 * 2**20
TOKEN = secrets.token_hex(32)
"""Of this process's private clusters (one for all of them, because Ray remembers the first)."""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray listens on 127.0.0.1 alone, as it does by itself where it knows no clusters (macOS, Windows).

``_node_ip_address`` cannot say so: Ray takes "127.0.0.1" for the machine's outer address."""
NO_UV = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": False}
"""Below ``uv run`` Ray would send the working folder to its workers, in front of all else on their path."""
LONGEST_RAY_FOLDER = 40
"""Characters; Ray appends some 65 for its sockets, and a socket's path may have 107."""
TOO_SLOW = "timed out during startup"
"""What Ray says when its own processes were not there in time."""
ATTEMPTS = 3
LOCAL_WORKERS_PER_CPU = 8
CONNECT_SECONDS = 5.0
SOURCE_PACKAGES = ("actors", "audits", "orchestrator", "tune_spaces")


def size_workers(requested: int | str, gpus: float, *, cpus: float = 1.0) -> int:
    """Return the number of workers for ``requested`` on this machine: a number, or "auto" = as many as fit.

    "auto" counts usable CPUs and GPUs; ``gpus`` and ``cpus`` are per worker. Raises BadInput for other words and when
    not one worker fits. A number may be more than fit: workers then share CPUs.
    """
    if requested == 0:
        return 0
    if not isinstance(requested, int) and requested != "auto":
        raise BadInput(f"workers = {requested!r}: give a number or 'auto'")
    cluster = Cluster((Node("this machine", float(usable_cpus()), float(_usable_gpus() if gpus else 0)),))
    count = cluster.room(cpus, gpus)
    if not count:
        raise BadInput(f"no worker with {Workers(1, cpus=cpus, gpus=gpus).size} fits: there are {cluster}")
    return count if requested == "auto" else Workers(int(requested), cpus=cpus, gpus=gpus).count


def _usable_gpus() -> int:
    import torch

    return torch.cuda.device_count()


@contextmanager
def connect(workers: Workers, last_words: Tell = say) -> Iterator[None]:
    """Start a private Ray cluster or join the one at ``workers.address``; only what was started here is shut down.

    Inside another ``connect`` (or with Ray already initialised by the caller) nothing is started. A private cluster
    takes orders from this process only (it listens on loopback, with a token of its own); its files are in
    ``workers.storage`` and stay there when the block raises. When it breaks and the block cannot be told,
    ``last_words`` is, and the process ends (``ray_watch``). A joined cluster's token is the user's matter. Raises
    BadInput when nothing answers at the address, or the storage folder cannot be used.
    """
    quiet = {name: os.environ.get(name, value) for name, value in QUIET.items()}
    threads = {"OMP_NUM_THREADS": str(workers.threads), "OMP_WAIT_POLICY": "PASSIVE"}
    with environment(quiet):
        with interrupt_held():
            import ray

        if ray.is_initialized():
            yield
        elif workers.address is None:
            with _private_cluster(workers, threads, last_words):
                yield
        else:
            _join(workers.address, threads)
            try:
                with head_left_out(workers):
                    yield
            finally:
                ray.shutdown()


@contextmanager
def _private_cluster(workers: Workers, threads: Mapping[str, str], last_words: Tell) -> Iterator[None]:
    import ray

    if workers.count > LOCAL_WORKERS_PER_CPU * usable_cpus():
        raise BadInput(
            f"{workers.count} workers are too many for the {usable_cpus()} CPUs of this machine "
            f"(at most {LOCAL_WORKERS_PER_CPU * usable_cpus()})"
        )
    mark = secrets.token_hex(16)
    with environment(_private_token()), _ray_folder(workers.storage) as folder, reaped(mark):
        if shutil.which("bash") is None:
            raise BadInput(
                "Ray starts workers by bash, which is not on PATH: install it, or take no workers (--workers 0)"
            )
        # by every process of the cluster, not kept here
        inherited = {**threads, **_import_path(), **LOOPBACK, MARK: mark, **_no_logs_of_others(folder)}
        try:
            with environment(inherited), _ray_constants(ENABLE_RAY_CLUSTER=False, **NO_UV):
                start = partial(
                    ray.init,
                    address="local",
                    num_cpus=max(1, int(workers.count * workers.cpus + 0.999)),
                    object_store_memory=OBJECT_STORE_BYTES,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    job_config=_job_settings(),
                    _temp_dir=folder,
                )
                _started(start, ray.shutdown)
            with watched(last_words):
                yield
        finally:
            ray.shutdown()


def _started(start: Callable[[], object], stop: Callable[[], object]) -> None:
    """Start Ray, and again where the machine was too busy; Ray gives its own processes half a minute.

    Ctrl-C is held while it starts, and raised between the attempts.
    """
    for attempt in range(ATTEMPTS):
        try:
            with interrupt_held(), endings_kept():
                start()
        except Exception as error:
            if TOO_SLOW not in str(error):
                raise
            stop()
            if attempt == ATTEMPTS - 1:
                raise RuntimeError(
                    f"Ray did not start, {ATTEMPTS} times within half a minute each: this machine is too busy or short "
                    "of memory; run the same command again when it is quieter, or with --workers 0, which needs no Ray"
                ) from error
        else:
            return


@contextmanager
def _ray_constants(**values: bool) -> Iterator[None]:
    """Set what Ray has read from its variables when it was first imported, which may have been long before."""
    from ray._private import ray_constants

    before = {name: getattr(ray_constants, name) for name in values}
    try:
        for name, value in values.items():
            setattr(ray_constants, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(ray_constants, name, value)


def _no_logs_of_others(folder: str) -> dict[str, str]:
    """Return where Ray looks for logs of TPUs: in an empty folder, not in /tmp/tpu_logs, which anybody can make.

    It would read what lies there to the end of a line, wherever that is.
    """
    empty = os.path.join(folder, "tpu_logs")
    make_folder(Path(empty), private=True)
    return {"TPU_LOG_DIR": empty}


def _import_path() -> dict[str, str]:
    """Return the environment by which Ray's processes find what this one does, but nothing in the working folder.

    The variable of Ray's is how a runtime environment names the function; such would keep started workers from serving.
    """
    from ray._private.ray_constants import WORKER_PROCESS_SETUP_HOOK_ENV_VAR

    return {"PYTHONPATH": os.pathsep.join(path_of_workers()), WORKER_PROCESS_SETUP_HOOK_ENV_VAR: SETTLED, **SAFE}


def _job_settings() -> JobConfig:
    """Return the settings of a job whose workers look for modules where their environment says.

    Ray puts the driver's working folder and that of its script in front of all else on the workers' path.
    """
    from ray.job_config import JobConfig

    class Settings(JobConfig):  # type: ignore[misc]  # ray is untyped here
        """Settings without folders of the driver."""

        def _serialize(self) -> Any:
            self._py_driver_sys_path.clear()
            return super()._serialize()

    return Settings()


def _private_token() -> dict[str, str | None]:
    """Return the environment of a token of this process's own, kept out of the user's home (Ray's default place).

    Other users of this machine reach the loopback interface too. A choice that the user made stands.
    """
    if "RAY_AUTH_MODE" in os.environ:
        return {}
    return {"RAY_AUTH_MODE": None, "RAY_AUTH_TOKEN": TOKEN}


@contextmanager
def _ray_folder(storage: str) -> Iterator[str]:
    """Yield a new folder for a cluster's files, with a short name; it is removed when all went well."""
    with _own_place(storage) as place:
        try:
            folder = tempfile.mkdtemp(prefix="r", dir=place)
        except OSError as error:
            raise _unusable(storage, error) from error
        if len(folder) <= LONGEST_RAY_FOLDER:
            yield folder
        else:
            with tempfile.TemporaryDirectory(prefix="orch-") as short:
                link = os.path.join(short, "ray")
                os.symlink(folder, link)
                yield link
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _own_place(storage: str) -> Iterator[Path]:
    """Yield the folder ``storage``; where others could exchange what lies in it, a new one elsewhere, which is removed.

    The processes of a cluster meet by sockets in their folder, and unpickle what they hear there. It is no link: orch
    has chosen the name, and whoever made the folder in which it lies may have put one there.
    """
    try:
        require_no_link(Path(storage))
        make_folder(Path(storage), private=True)
        place = Path(storage).resolve()
        exposed = others_can_exchange(place)
    except OSError as error:
        raise _unusable(storage, error) from error
    if not exposed:
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="orch-") as other:
        yield Path(other).resolve()


def _shared_place(storage: str) -> Path:
    """Return the folder ``storage``, which the nodes of a cluster share; who may change it is the caller's matter."""
    try:
        require_no_link(Path(storage))
    except OSError as error:
        raise _unusable(storage, error) from error
    return Path(storage).resolve()


def _unusable(storage: str, error: OSError) -> BadInput:
    return BadInput(f"storage {storage!r} cannot be used for Ray's files: {error}")


@contextmanager
def run_folder(workers: Workers, kind: str) -> Iterator[tuple[str, str]]:
    """Yield (storage path, new run name) for one Train or Tune run; a local folder is removed afterwards.

    Raises BadInput where the storage folder cannot be used.
    """
    name = f"{re.sub('[^a-z0-9]+', '-', kind.lower()).strip('-')}-{uuid4().hex[:12]}"
    if "://" in workers.storage:
        yield workers.storage, name
        return
    shared = workers.address is not None  # by the nodes of a cluster
    with nullcontext(_shared_place(workers.storage)) if shared else _own_place(workers.storage) as storage:
        try:
            yield str(storage), name
        finally:
            shutil.rmtree(storage / name, ignore_errors=True)


def _join(address: str, threads: Mapping[str, str]) -> None:
    import ray
    from ray.exceptions import RayError

    if address == "auto":
        address = own_cluster()
    _require_answer(address)
    try:
        with endings_kept(), _ray_constants(**NO_UV):
            ray.init(
                address=address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                job_config=_job_settings(),
                runtime_env={
                    "env_vars": {**threads, **SAFE},
                    "worker_process_setup_hook": SETTLED,
                    **_source_packages(),
                },
            )
    except (ConnectionError, RayError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise BadInput(
            f"the Ray cluster at {address!r} cannot be joined: {reason} (is its token in ~/.ray/auth_token or "
            f"RAY_AUTH_TOKEN, and this machine one of its nodes?)"
        ) from error


def _require_answer(address: str) -> None:
    """Raise BadInput unless something listens at host:port (other names are left to Ray)."""
    if address.startswith("ray://"):
        raise BadInput(f"address {address!r}: ray:// is not used; run on a node of the cluster with address 'auto'")
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise BadInput(f"no Ray cluster answers at {address!r}: {error}") from error


def _source_packages() -> dict[str, Any]:
    """Return the runtime environment that gives workers the driver's own source.

    Artefact keys contain the version of the code, so all workers must run the driver's. Installed packages are taken to
    be the same on every node (cluster.yaml installs them); from a checkout the packages travel with the job, and so do
    modules of users' own that lie in a folder.
    """
    root = Path(__file__).resolve().parent.parent
    installed = root.name in ("site-packages", "dist-packages")
    ours = [] if installed else [root / name for name in SOURCE_PACKAGES if (root / name).is_dir()]
    places = [str(place) for place in (*ours, *travelling())]
    return {"py_modules": places} if places else {}
