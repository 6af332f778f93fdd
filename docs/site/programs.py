# SPDX-License-Identifier: Apache-2.0
"""What Berth's programs say, for the pictures: the demo and its curves, and a gang from its first pod to its start."""

import json
import pathlib
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request


def demo(replay):
    """The output of `berth-replay demo` without the times and what follows them, and the curves of its report."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([replay, "demo", "--report", folder], check=True, capture_output=True, text=True)
        results = json.loads((pathlib.Path(folder) / "report.json").read_text(encoding="utf-8"))["results"]
    held = {one["policy"]: one["mean"]["arrivals"]["allocated_pct"][80:] for one in results}
    return run.stdout.split("Over HTTP:")[0], held


class Served:
    """`berth serve --cluster` with one node of eight GPUs and these pods."""

    def __init__(self, berth, folder, pods):
        amounts = {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi", "pods": "110"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}
        file = pathlib.Path(folder) / "c.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, *pods]}), encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([berth, "serve", "--cluster", file, "--listen", self.address], **quiet)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.address}{path}", data=data, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def when(self, true):
        """The gang, as soon as that is true of it."""
        for _ in range(300):
            try:
                gang = self.ask("/debug/gangs/ml/train")
                if true(gang):
                    return gang
            except (OSError, urllib.error.URLError):
                pass
            time.sleep(0.1)
        raise TimeoutError("the gang does not get so far")


def gang(berth):
    """[(what happened, {pod: its state})], of a gang of four pods with two GPUs each."""
    words = {"berth.dev/gang": "train", "berth.dev/gang-size": "4"}
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"worker-{i}", "namespace": "ml", "uid": f"uid-{i}", "annotations": words},
            "spec": {"containers": [container]},
            "status": {"phase": "Pending"},
        }
        for i in range(4)
    ]
    steps = []

    def note(happened, gang, held=()):
        states = {member["pod"].split("/")[1]: member["state"] for member in gang["members"]}
        waits = {"waiting": gang["state"]}  # the gang says what for
        steps.append((happened, {name: "bind held" if name in held else waits.get(state, state) for name, state in states.items()}))

    with tempfile.TemporaryDirectory() as folder:
        with Served(berth, folder, pods[:3]) as server:
            note("3 created", server.when(lambda gang: len(gang["members"]) == 3))
        with Served(berth, folder, pods) as server:
            note("4 created", server.when(lambda gang: len(gang["members"]) == 4))
            server.ask("/extender/filter", {"Pod": pods[0], "NodeNames": ["n1"]})
            note("filter", server.when(lambda gang: gang["planned"] == 4))
            binds = []
            for i, pod in enumerate(pods):
                name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                body = {"PodName": name, "PodNamespace": "ml", "PodUID": uid, "Node": "n1"}
                binds.append(threading.Thread(target=server.ask, args=("/extender/bind", body)))
                binds[-1].start()
                if i < 3:
                    held = [f"worker-{j}" for j in range(i + 1)]
                    note(f"bind of {i}", server.when(lambda gang, count=i + 1: gang["held"] == count), held)
            for bind in binds:
                bind.join()
            note("bind of 3", server.when(lambda gang: all(member["state"] == "bound" for member in gang["members"])))
    return steps
