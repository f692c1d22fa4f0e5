"""A private cluster can be reached from this machine alone."""

from __future__ import annotations

import os
import socket
import urllib.request
from ipaddress import ip_address

import pytest

from actors.cluster import connect
from actors.jobs import Workers
from tests.cases.ports import listening
from tests.cases.processes import below

pytestmark = pytest.mark.cluster


def test_the_table_of_ports_is_read() -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere, socket.create_server(("127.0.0.1", 0)) as here:
        found = listening([os.getpid()])
        assert found >= {everywhere.getsockname(), here.getsockname()}


def test_no_process_of_a_private_cluster_listens_beyond_the_loopback_interface(cluster: Workers) -> None:
    import ray

    class Process:
        def pid(self) -> int:
            return os.getpid()

    with connect(cluster):
        started = [ray.remote(Process).remote() for _ in range(cluster.count)]
        workers = set(ray.get([each.pid.remote() for each in started]))
        processes = below(os.getpid())
        assert workers <= processes.keys()
        assert all(listening([pid]) for pid in workers)
        names = " ".join(processes.values())
        assert "gcs_server" in names and "raylet" in names
        open_ports = listening([os.getpid(), *processes])
        assert len(open_ports) >= 4 + len(workers)
        assert [where for where, _ in open_ports if not ip_address(where).is_loopback] == []
        dashboards = [pid for pid, words in processes.items() if "/dashboard/dashboard.py" in words]
        assert dashboards  # Ray starts it whether it is wanted or not
        for _, port in listening(dashboards):
            for page in ("", "metrics", "api/jobs/"):  # whatever it is asked for, it tells numbers about itself
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=60) as answer:
                    assert answer.read().startswith(b"# HELP")
        for each in started:
            ray.kill(each)
