#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a pod costs `berth serve` on a large cluster: time, CPU (also behind the answer) and memory.

    python3 bench/lab/scale.py build/release/bin/berth [--nodes 5000] [--pods 300] [--kinds 48] [--bound 300000]
    python3 bench/lab/scale.py build/release/bin/berth --beside [WHAT]

Every pod is different unless there are to be so many kinds; each is filtered, prioritized and bound, with every name in the body. --beside: the same
pods in turns with nothing and with what others ask for meanwhile: a line each (only those whose text has WHAT). As root `chrt -f 20` keeps other
work of the machine out; what asks beside has the usual priority.
"""
import argparse
import json
import multiprocessing
import os
import random
import re
import socket
import subprocess
import tempfile
import time

ARGUMENTS = argparse.ArgumentParser()
ARGUMENTS.add_argument("program")
ARGUMENTS.add_argument("--nodes", type=int, default=5000)
ARGUMENTS.add_argument("--pods", type=int, default=300)
ARGUMENTS.add_argument("--kinds", type=int, default=0)
ARGUMENTS.add_argument("--bound", type=int, default=0)
ARGUMENTS.add_argument("--beside", nargs="?", const="", metavar="WHAT")
ARGUMENTS.add_argument("--turns", type=int, default=5)
ARGS = ARGUMENTS.parse_args()
NAMES = [f"gpu-node-{i:06d}.pool-a" for i in range(ARGS.nodes)]
NAME_LIST = ",".join(f'"{name}"' for name in NAMES).encode()
GANG = 1100


class Client:
    """One keep-alive connection."""

    def __init__(self, address):
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = bytearray(1 << 16)

    def ask(self, method, path, *parts):
        """The body of the answer, which the next call overwrites."""
        size = sum(len(part) for part in parts)
        self.socket.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {size}\r\n\r\n".encode() + parts[0] if parts else
            f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        for part in parts[1:]:
            self.socket.sendall(part)
        have, end, need = 0, -1, None
        while need is None or have < need:
            if have == len(self.answer):
                self.answer.extend(bytes(len(self.answer)))
            have += (got := self.socket.recv_into(memoryview(self.answer)[have:]))
            assert got, "the connection is closed"
            if need is None and (end := self.answer.find(b"\r\n\r\n", 0, have)) >= 0:
                head = bytes(self.answer[:end]).lower()
                assert re.match(rb"http/1.1 (200|304)", head), bytes(self.answer[:have])
                need = end + 4 + int(re.search(rb"content-length: (\d+)", head).group(1))
                if need > len(self.answer):
                    self.answer.extend(bytes(need - len(self.answer)))
        return self.answer[end + 4:need]


def pod(name, requests, annotations=None):
    return {"metadata": {"name": name, "namespace": "d", "uid": f"u-{name}", "annotations": annotations or {}},
            "spec": {"containers": [{"name": "m", "resources": {"requests": requests, "limits": requests}}]}}


def some_pod(name, chance):
    """Of ARGS.kinds kinds; 0: no two of them ask for the same."""
    if ARGS.kinds:
        chance = random.Random(chance.randrange(ARGS.kinds))
    cpu = str(chance.randrange(1000, 12000)) + "m"
    memory = str(chance.randrange(1000, 60000)) + "Mi"
    if chance.random() < 0.3:
        tenths = 100 * chance.randrange(1, 9)
        return pod(name, {"cpu": cpu, "memory": memory, "berth.dev/gpu-milli": str(tenths)})
    gpus = chance.choice([1, 1, 1, 1, 2, 2, 4, 8])
    return pod(name, {"cpu": cpu, "memory": memory, "nvidia.com/gpu": str(gpus)})


def member(gang, number, gpus="8"):
    return pod(f"{gang}-{number}", {"cpu": "1", "nvidia.com/gpu": gpus},
               {"berth.dev/gang": gang, "berth.dev/gang-size": str(GANG)})


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


class Service:
    def __init__(self):
        # Bound pods hold six GPUs of a node, one each, and the other nodes are empty.
        gpus = [{"uuid": "", "memory_mib": 81251, "healthy": True}] * 8
        chance = random.Random(1)
        pods = []
        for i in range(ARGS.bound):
            node, gpu = NAMES[i // 6], i % 6
            pods.append({
                "uid": f"b{i}", "namespace": "old", "name": f"b{i}", "state": "bound", "node": node,
                "cpu_milli": 1000 * chance.randrange(1, 9), "memory_bytes": chance.randrange(1, 16) << 30,
                "ask": {"gpus": 1}, "models": [],
                "containers": [{"name": "m", "ask": {"gpus": 1}, "ends_first": False}],
                "grants": [{"milli": 1000, "memory_mib": 81251, "gpu": gpu}], "gpu_resource": "nvidia.com/gpu"})
        cluster = {"version": 1, "pods": pods, "nodes": [
            {"name": name, "cpu_milli": 128000, "memory_bytes": 1 << 40, "gpu_model": "A100", "ready": True,
             "gpus": gpus} for name in NAMES]}
        self.file = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump(cluster, self.file)
        self.file.flush()
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [ARGS.program, "serve", "--cluster", self.file.name, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found = re.search(r"https?://([\d.]+):(\d+)", self.process.stdout.readline())
        self.start = time.perf_counter() - began
        self.address = (found.group(1), int(found.group(2)))
        self.client = Client(self.address)

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    def rest(self):
        """Waits until nothing is left to do behind the answers."""
        before = -1
        while (now := self.cpu()) - before > 10:
            before = now
            time.sleep(0.3)

    def mib(self, name="VmRSS"):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(name + r":\s+(\d+)", status.read()).group(1)) / 1024

    def timed(self, path, times, *parts):
        began = time.perf_counter()
        answer = self.client.ask("POST", path, *parts)
        times.append((time.perf_counter() - began) * 1000)
        return answer

    def place(self, one, filters, priorities):
        body = (b'{"Pod":' + json.dumps(one).encode() + b',"Nodes":null,"NodeNames":[', NAME_LIST, b"]}")
        self.timed("/extender/filter", filters, *body)
        scored = self.timed("/extender/prioritize", priorities, *body)
        best = scored.find(b'","Score":10}')
        if best < 0:
            return  # it fits nowhere
        node = bytes(scored[scored.rfind(b'"', 0, best) + 1:best]).decode()
        meta = one["metadata"]
        answer = self.client.ask("POST", "/extender/bind", json.dumps(
            {"PodName": meta["name"], "PodNamespace": "d", "PodUID": meta["uid"], "Node": node}).encode())
        assert answer == b'{"Error":""}', answer

    def hear(self, one):
        """A filter whose answer nobody waits for."""
        self.client.ask("POST", "/extender/filter",
                        b'{"Pod":' + json.dumps(one).encode() + b',"Nodes":null,"NodeNames":[', NAME_LIST, b"]}")


def say(what, filters, priorities, more=""):
    print(f"| {what} | {quantile(filters, .5):.2f} / {quantile(filters, .99):.2f} | "
          f"{quantile(priorities, .5):.2f} / {quantile(priorities, .99):.2f} | {more}", flush=True)


# What asks beside, each in a process of its own, until it is ended.

def be_like_others():
    """As niceness or a priority may have been given to who measures."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, 0)


def again(address, pause, method, path, *parts):
    be_like_others()
    client = Client(address)
    while True:
        client.ask(method, path, *parts)
        time.sleep(pause)


def look(address, part):
    time.sleep(part)
    again(address, 3, "GET", "/debug/live")


def gangs(address):
    """One after the other, each planned when its last member has come, and then gone."""
    be_like_others()
    client = Client(address)
    for gang in range(1000):
        for number in range(64):
            one = pod(f"now{gang}-{number}", {"cpu": "1", "nvidia.com/gpu": "1"},
                      {"berth.dev/gang": f"now{gang}", "berth.dev/gang-size": "64"})
            client.ask("POST", "/extender/filter",
                       b'{"Pod":' + json.dumps(one).encode() + b',"Nodes":null,"NodeNames":[', NAME_LIST, b"]}")
        time.sleep(1)


JOB = json.dumps({"pods": [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {
    "parallelism": 200, "completions": 200, "template": {"spec": {"containers": [
        {"name": "m", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}}}]}).encode()
ROOM = json.dumps({"make_room": {"idle_nodes": 20}}).encode()


def beside(service):
    print(f"{ARGS.nodes} nodes, {ARGS.pods} pods a turn, {ARGS.turns} turns each\n")
    print("| | filter p50 / p99 ms | prioritize | filter: p99 of the same turns with nothing beside |\n|---|---|---|---|")
    chance = random.Random(2)
    number = 0

    def turn(filters, priorities):
        nonlocal number
        for _ in range(ARGS.pods):
            service.place(some_pod(f"p{number}", chance), filters, priorities)
            number += 1

    first = [], []
    turn(*first)
    say("the first pods", *first)
    address = service.address
    for what, calls in [
            ("an explanation every 20 ms", [(again, (address, .02, "GET", "/debug/pods/d/p1"))]),
            ("explanations of a node, of all GPUs", [(again, (address, .02, "GET", f"/debug/nodes/{NAMES[7]}")),
                                                      (again, (address, .2, "GET", "/debug/top"))]),
            ("plans of 200 nodes", [(again, (address, .1, "POST", "/plan", JOB))]),
            ("plans that make room", [(again, (address, .1, "POST", "/plan", ROOM))]),
            ("10 viewers", [(look, (address, i * .3)) for i in range(10)]),
            ("gangs of 64 are planned", [(gangs, (address,))])]:
        if ARGS.beside not in what:
            continue
        alone, watched = ([], []), ([], [])
        for _ in range(ARGS.turns):
            service.rest()
            turn(*alone)
            others = [multiprocessing.Process(target=call, args=args, daemon=True) for call, args in calls]
            for other in others:
                other.start()
            time.sleep(0.5)
            turn(*watched)
            for other in others:
                other.terminate()
                other.join()
        ratio = quantile(watched[0], .99) / quantile(alone[0], .99)
        say(what, *watched, f"{quantile(alone[0], .99):.2f}, x {ratio:.2f} |")
    if ARGS.beside not in "six gangs wait":
        return
    # Two servers get the same pods; one of them has the gangs.
    without, with_gangs = Service(), Service()
    for gang in range(6):
        for i in range(GANG):
            with_gangs.hear(member(f"big{gang}", i))
    both = (without, ([], [])), (with_gangs, ([], []))
    for _ in range(ARGS.turns):
        pods = [some_pod(f"p{number + i}", chance) for i in range(ARGS.pods)]
        number += ARGS.pods
        for each, times in both:
            each.rest()
            for one in pods:
                each.place(one, *times)
    alone, waiting = both[0][1], both[1][1]
    ratio = quantile(waiting[0], .99) / quantile(alone[0], .99)
    say(f"six gangs of {GANG} wait", *waiting, f"{quantile(alone[0], .99):.2f}, x {ratio:.2f} |")
    with_gangs.process.terminate()


def main():
    service = Service()
    if ARGS.beside is not None:
        beside(service)
    else:
        filters, priorities = [], []
        chance = random.Random(1)
        service.rest()
        before = service.cpu()
        began = time.perf_counter()
        for i in range(ARGS.pods):
            service.place(some_pod(f"p{i}", chance), filters, priorities)
        took = time.perf_counter() - began
        served = service.cpu()
        service.rest()
        print("| nodes | start s | filter p50 / p99 ms | prioritize | CPU ms a pod, behind the answers | MiB, most |\n"
              "|---|---|---|---|---|---|")
        each = (service.cpu() - before) / ARGS.pods
        print(f"| {ARGS.nodes} | {service.start:.1f} | {quantile(filters, .5):.2f} / {quantile(filters, .99):.2f} | "
              f"{quantile(priorities, .5):.2f} / {quantile(priorities, .99):.2f} | {each:.1f}, "
              f"{(service.cpu() - served) / ARGS.pods:.1f} | {service.mib():.0f}, {service.mib('VmHWM'):.0f} |")
        print(f"{ARGS.pods} pods in {took:.1f} s")
    service.process.terminate()


main()
