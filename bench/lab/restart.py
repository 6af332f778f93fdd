#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a Berth that is started again binds a pod: SIGKILL, the same program again in the same place.

    chrt -f 20 python3 bench/lab/restart.py build/release/bin/berth [--nodes 5000] [--pods 20000] [--rounds 5]

The API server is a process of its own, which has its pages of nodes and pods ready. Who stands for kube-scheduler
asks about one pod again and again, as soon as the last question was answered or refused.
"""
import argparse
import json
import multiprocessing
import os
import re
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading
import time

ARGUMENTS = argparse.ArgumentParser()
ARGUMENTS.add_argument("program")
ARGUMENTS.add_argument("--nodes", type=int, default=5000)
ARGUMENTS.add_argument("--pods", type=int, default=20000)
ARGUMENTS.add_argument("--rounds", type=int, default=5)
ARGUMENTS.add_argument("--other-place", action="store_true", help="it is started where nothing is left of the killed one")
ARGUMENTS.add_argument("--verbose", action="store_true")
ARGS = ARGUMENTS.parse_args()
NAMES = [f"gpu-node-{i}" for i in range(ARGS.nodes)]
GPUS = 8
# Of every object; those of real clusters take about that.
MANAGED = {f"f:field{i}": {".": {}, "f:lastTransitionTime": {}, "f:status": {}} for i in range(22)}


def meta(name, number, **more):
    return {"name": name, "uid": f"6f1c2d3e-0000-4000-8000-{number:012d}", "resourceVersion": "1000",
            "creationTimestamp": "2026-01-01T00:00:00Z", **more, "managedFields": [
                {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
                 "fieldsType": "FieldsV1", "fieldsV1": MANAGED}]}


def node(i):
    return {"metadata": meta(NAMES[i], i, labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
                                                  "nvidia.com/gpu.memory": "81920"}),
            "spec": {}, "status": {"allocatable": {"cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"},
                                   "conditions": [{"type": "Ready", "status": "True"}],
                                   "images": [{"names": [f"registry.invalid/image{n}@sha256:" + 16 * "abcd"],
                                               "sizeBytes": 123456789} for n in range(20)]}}


def pod(i):
    on, gpu = NAMES[i % ARGS.nodes], i // ARGS.nodes % GPUS
    devices = {"version": 1, "node": on, "containers": {
        "main": {"gpus": [{"index": gpu, "milli": 1000, "memory_mib": 81920}]}}}
    amounts = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    return {"metadata": meta(f"training-job-{i}-worker-0", 10**6 + i, namespace=f"team-{i % 40}",
                             labels={"app": "training", "job-name": f"training-job-{i}"},
                             annotations={"berth.dev/devices": json.dumps(devices)}),
            "spec": {"nodeName": on, "schedulerName": "default-scheduler", "containers": [
                {"name": "main", "image": "registry.invalid/team/training:1.2.3", "command": ["python", "train.py"],
                 "resources": {"limits": amounts, "requests": amounts}}]},
            "status": {"phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.2.3",
                       "conditions": [{"type": "Ready", "status": "True"}]}}


class Lists:
    """By path: the objects as JSON."""

    def __init__(self):
        self.of = {"/api/v1/nodes": [json.dumps(node(i)) for i in range(ARGS.nodes)],
                   "/api/v1/pods": [json.dumps(pod(i)) for i in range(ARGS.pods)],
                   "/apis/policy/v1/poddisruptionbudgets": [], "ended": []}
        self.pages = {}

    def page(self, path, begin, limit):
        key = (path, begin, limit)
        if key not in self.pages:
            end = min(len(self.of[path]), begin + limit)
            more = str(end) if end < len(self.of[path]) else ""
            self.pages[key] = (f'{{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"1000","continue":"{more}"}},'
                               f'"items":[{",".join(self.of[path][begin:end])}]}}').encode()
        return self.pages[key]


class Connection(socketserver.StreamRequestHandler):
    lists, lease, version, lock, began = None, None, 0, threading.Lock(), 0.0
    disable_nagle_algorithm = True

    def handle(self):
        while line := self.rfile.readline():
            method, target = line.decode().split()[:2]
            size = 0
            while (header := self.rfile.readline().decode().strip()):
                if header.lower().startswith("content-length:"):
                    size = int(header.split(":")[1])
            body = self.rfile.read(size)
            if not self.answer(method, target, body):
                return

    def say(self, status, body):
        self.wfile.write(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
                         f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return True

    def answer(self, method, target, body):
        path, _, query = target.partition("?")
        if "status.phase=Succeeded" in query:  # of the pods here none has ended
            path = "ended"
        if ARGS.verbose and "watch" not in query:
            print(f"{time.time():.3f} {method} {target[:120]}", flush=True)
        if "/leases" in path:
            return self.lease_answer(method, body)
        if method == "POST":
            return self.say(201, b'{"kind":"Status","status":"Success"}')
        if path not in self.lists.of:
            return self.say(404, b'{"kind":"Status","status":"Failure","code":404,"reason":"NotFound"}')
        if "watch=1" in query:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            return self.rfile.readline() and False  # until the client closes
        limit = int((re.search(r"limit=(\d+)", query) or [0, 10**9])[1])
        begin = int((re.search(r"continue=(\d+)", query) or [0, 0])[1])
        return self.say(200, self.lists.page(path, begin, limit))

    def lease_answer(self, method, body):
        cls = Connection
        with cls.lock:
            if method == "GET" and cls.lease is None:
                return self.say(404, b'{"kind":"Status","code":404}')
            if method != "GET":
                lease = json.loads(body)
                known = lease["metadata"].get("resourceVersion", "")
                if known != ("" if cls.lease is None else cls.lease["metadata"]["resourceVersion"]):
                    return self.say(409, b'{"kind":"Status","code":409}')
                cls.version += 1
                lease["metadata"]["resourceVersion"] = str(cls.version)
                cls.lease = lease
            return self.say(200, json.dumps(cls.lease).encode())


class ApiServer(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address, request_queue_size = True, True, 64

    def handle_error(self, request, client_address):
        """The client was killed."""


def serve_api(out):
    Connection.lists = Lists()
    for path, limit in [("/api/v1/nodes", 500), ("/api/v1/pods", 500)]:
        for begin in range(0, len(Connection.lists.of[path]), limit):
            Connection.lists.page(path, begin, limit)
    with ApiServer(("127.0.0.1", 0), Connection) as server:
        out.send(server.server_address[1])
        server.serve_forever()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Scheduler:
    """One keep-alive connection, opened anew where it is closed."""

    def __init__(self, port):
        self.port, self.socket = port, None

    def ask(self, path, body):
        """None: no answer, or not 200."""
        try:
            if self.socket is None:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
            self.socket.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                                f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            have = b""
            while b"\r\n\r\n" not in have:
                have += (got := self.socket.recv(1 << 20))
                if not got:
                    raise ConnectionError
            head, have = have.split(b"\r\n\r\n", 1)
            size = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
            while len(have) < size:
                have += self.socket.recv(1 << 20)
            if b" 200 " not in head.split(b"\r\n")[0] or b"close" in head.lower():
                self.socket = None
            return json.loads(have) if b" 200 " in head.split(b"\r\n")[0] else None
        except (ConnectionError, OSError):
            self.socket = None
            return None

    def place(self, name):
        one = {"metadata": {"name": name, "namespace": "d", "uid": f"u-{name}"}, "spec": {"containers": [
            {"name": "m", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"},
                                        "limits": {"nvidia.com/gpu": "1"}}}]}}
        body = json.dumps({"Pod": one, "Nodes": None, "NodeNames": NAMES}).encode()
        while (fits := self.ask("/extender/filter", body)) is None:
            time.sleep(.002)
        assert fits["NodeNames"], fits
        bound = self.ask("/extender/bind", json.dumps(
            {"PodName": name, "PodNamespace": "d", "PodUID": f"u-{name}", "Node": fits["NodeNames"][0]}).encode())
        assert bound == {"Error": ""}, bound


def start(api, port, folder):
    """Of a Berth that is started now: the process, and when."""
    config = os.path.join(folder, "kubeconfig")
    with open(config, "w", encoding="ascii") as file:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                   "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{api}"}}], "users": [],
                   "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}]}, file)
    began = time.perf_counter()
    if ARGS.verbose:
        print(f"{time.time():.3f} start")
    process = subprocess.Popen([ARGS.program, "serve", "--kubeconfig", config, "--listen", f"127.0.0.1:{port}"],
                               env={**os.environ, "BERTH_RUNTIME_DIR": folder}, stdout=subprocess.DEVNULL,
                               stderr=None if ARGS.verbose else subprocess.DEVNULL)
    return process, began


def cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve_api, args=(there,), daemon=True)
    server.start()
    api, port, took = here.recv(), free_port(), []
    with tempfile.TemporaryDirectory() as first:
        folder = first
        process, _ = start(api, port, folder)
        Scheduler(port).place("first")
        for number in range(ARGS.rounds):
            process.send_signal(signal.SIGKILL)
            process.wait()
            if ARGS.other_place:
                folder = os.path.join(first, str(number))
                os.mkdir(folder)
            process, began = start(api, port, folder)
            Scheduler(port).place(f"p{number}")
            took.append(time.perf_counter() - began)
            print(f"bound {took[-1]:.3f} s after the start, {cpu(process.pid):.2f} s of CPU", flush=True)
            time.sleep(1)
        process.kill()
        process.wait()
    print(f"{ARGS.nodes} nodes, {ARGS.pods} pods: median {sorted(took)[len(took) // 2]:.2f} s, worst {max(took):.2f} s")


main()
