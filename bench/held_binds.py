#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A gang of 1,001 pods over HTTP: what planning costs, and what 1,000 binds that are held cost.

    python3 bench/held_binds.py build/release/bin/berth
"""
import http.client
import json
import re
import socket
import subprocess
import sys
import tempfile
import time

MEMBERS = 1001
NODES = [f"n{i:03d}" for i in range(126)]


def pod(i):
    return {
        "metadata": {
            "name": f"p-{i}", "namespace": "d", "uid": f"u-{i}",
            "annotations": {"berth.dev/gang": "big", "berth.dev/gang-size": str(MEMBERS)}},
        "spec": {"containers": [
            {"name": "m", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}}]}}


def binding(i, node):
    return json.dumps({"PodName": f"p-{i}", "PodNamespace": "d", "PodUID": f"u-{i}", "Node": node})


class Service:
    def __init__(self, program):
        gpus = [{"uuid": "", "memory_mib": 80000, "healthy": True}] * 8
        cluster = {"version": 1, "pods": [], "nodes": [
            {"name": name, "cpu_milli": 200000, "memory_bytes": 1 << 40, "gpu_model": "A100",
             "ready": True, "gpus": gpus} for name in NODES]}
        self.file = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump(cluster, self.file)
        self.file.flush()
        self.process = subprocess.Popen(
            [program, "serve", "--cluster", self.file.name, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        address = re.search(r"http://([\d.]+):(\d+)", self.process.stdout.readline())
        self.address = (address.group(1), int(address.group(2)))
        self.client = http.client.HTTPConnection(*self.address)

    def ask(self, method, path, body=None):
        self.client.request(method, path, body, {"Content-Type": "application/json"})
        return json.loads(self.client.getresponse().read())

    def filter(self, i):
        body = {"Pod": pod(i), "Nodes": None, "NodeNames": NODES}
        return (self.ask("POST", "/extender/filter", json.dumps(body))["NodeNames"] or [None])[0]

    def hold(self, i, node):
        body = binding(i, node)
        connection = socket.create_connection(self.address)
        connection.sendall((
            f"POST /extender/bind HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        return connection

    def size(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            text = status.read()
        field = lambda name: int(re.search(name + r":\s+(\d+)", text).group(1))
        return field("VmRSS") / 1024, field("Threads")


def main():
    service = Service(sys.argv[1])
    last = MEMBERS - 1
    for i in range(last):
        assert service.filter(i) is None, "a gang that is not there was let go"
    began = time.time()
    nodes = {last: service.filter(last)}
    plan = time.time() - began
    began = time.time()
    for i in range(last):
        nodes[i] = service.filter(i)
    each = (time.time() - began) / last
    before, threads = service.size()
    held = [service.hold(i, nodes[i]) for i in range(last)]
    while (gang := service.ask("GET", "/debug/gangs")[0])["held"] < last:
        time.sleep(0.1)
    after, threads_after = service.size()
    began = time.time()
    service.ask("POST", "/extender/bind", binding(last, nodes[last]))
    for connection in held:
        answer = connection.recv(65536)
        assert b'"Error":""' in answer, answer
    released = time.time() - began
    service.process.terminate()
    print(f"filter that plans {MEMBERS} members: {plan * 1000:.1f} ms")
    print(f"filter of a member that is planned: {each * 1000:.2f} ms")
    print(f"{gang['held']} binds held: {after - before:+.1f} MiB, {threads_after - threads:+d} threads")
    print(f"all answered {released * 1000:.0f} ms after the last bind")


main()
