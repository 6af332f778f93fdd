#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A large gang over HTTP: what planning costs, and what the binds of all but one cost while they are held.

    python3 bench/lab/held_binds.py build/release/bin/berth [--members 1001] [--tls]

With --tls client and server show each other certificates, which the program openssl makes.
"""
import argparse
import http.client
import json
import os
import re
import resource
import socket
import ssl
import subprocess
import tempfile
import time

ARGUMENTS = argparse.ArgumentParser()
ARGUMENTS.add_argument("program")
ARGUMENTS.add_argument("--members", type=int, default=1001)
ARGUMENTS.add_argument("--tls", action="store_true")
ARGS = ARGUMENTS.parse_args()
MEMBERS = ARGS.members
NODES = [f"n{i:04d}" for i in range(MEMBERS // 8 + 1)]


class Certificates:
    """Of a CA, of the server and of its client, in a folder that goes away."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.make("ca", ["-x509"])
        for name in ["server", "client"]:
            self.make(name, ["-x509", "-CA", self.path("ca.crt"), "-CAkey", self.path("ca.key")])

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def make(self, name, more):
        subprocess.run(
            ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-days", "1", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.crt")] + more,
            check=True, stderr=subprocess.DEVNULL)

    def config(self):
        return (f"server: {{tls: {{certificateFile: {self.path('server.crt')}, "
                f"keyFile: {self.path('server.key')}, clientCaFile: {self.path('ca.crt')}}}}}")

    def client(self):
        context = ssl.create_default_context(cafile=self.path("ca.crt"))
        context.load_cert_chain(self.path("client.crt"), self.path("client.key"))
        return context


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
        self.certificates = Certificates() if ARGS.tls else None
        self.context = self.certificates.client() if ARGS.tls else None
        self.cluster = self.write("cluster.json", json.dumps(cluster))
        self.config = self.write("berth.yaml", self.certificates.config() if ARGS.tls else "")
        self.process = subprocess.Popen(
            [program, "serve", "--cluster", self.cluster.name, "--config", self.config.name,
             "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        address = re.search(r"https?://([\d.]+):(\d+)", self.process.stdout.readline())
        self.address = (address.group(1), int(address.group(2)))
        self.client = (http.client.HTTPSConnection(*self.address, context=self.context) if ARGS.tls
                       else http.client.HTTPConnection(*self.address))

    @staticmethod
    def write(name, text):
        file = tempfile.NamedTemporaryFile("w", suffix=name)
        file.write(text)
        file.flush()
        return file

    def connect(self):
        connection = socket.create_connection(self.address)
        if self.context:
            connection = self.context.wrap_socket(connection, server_hostname=self.address[0])
        return connection

    def ask(self, method, path, body=None):
        self.client.request(method, path, body, {"Content-Type": "application/json"})
        return json.loads(self.client.getresponse().read())

    def filter(self, i):
        body = {"Pod": pod(i), "Nodes": None, "NodeNames": NODES}
        return (self.ask("POST", "/extender/filter", json.dumps(body))["NodeNames"] or [None])[0]

    def hold(self, i, node):
        body = binding(i, node)
        connection = self.connect()
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
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
    service = Service(ARGS.program)
    last = MEMBERS - 1
    for i in range(last):
        assert service.filter(i) is None, "a gang that is not there was let go"
    began = time.time()
    nodes = {last: service.filter(last)}
    plan = time.time() - began
    began = time.time()
    for i in range(last):
        nodes[i] = service.filter(i)
    filter_time = (time.time() - began) / last
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
    print(f"filter of a member that is planned: {filter_time * 1000:.2f} ms")
    each = (after - before) * 1024 / last
    print(f"{gang['held']} binds held{' over TLS' if ARGS.tls else ''}: {after - before:+.1f} MiB, "
          f"{each:.1f} KiB each, {threads_after - threads:+d} threads")
    print(f"all answered {released * 1000:.0f} ms after the last bind")


main()
