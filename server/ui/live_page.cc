// SPDX-License-Identifier: Apache-2.0
#include "server/ui/live_page.h"

namespace berth {

std::string_view LivePage() {
  return R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Berth</title>
<style>
  body { font: 14px system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }
  h1 { font-size: 1.3em; }
  #nodes { display: flex; flex-wrap: wrap; gap: 6px 14px; }
  .node { display: flex; align-items: center; gap: 2px; }
  .node span { width: 11em; overflow: hidden; text-overflow: ellipsis; font-size: 11px; }
  .gpu { width: 12px; height: 18px; border: 1px solid #999; display: flex; align-items: flex-end; }
  .gpu i { display: block; width: 100%; background: #2b6cb0; }
  .sick { background: #e8a0a0; }
  .cut { width: auto; align-items: stretch; }
  .cut b { width: 4px; }
  .cut b.taken { background: #2b6cb0; }
  .cut b.free { background: #bcd3ea; }
  .cut b.first { border-left: 1px solid #fff; }
  .off { opacity: .4; }
</style>
<h1>Berth</h1>
<p id="sum">loading</p>
<p id="advice"></p>
<div id="nodes"></div>
<script>
"use strict";
const most = 400;  // nodes drawn
function used(snapshot) {
  const byNode = new Map();
  for (const pod of snapshot.pods) {
    if (!byNode.has(pod.node)) byNode.set(pod.node, new Map());
    const gpus = byNode.get(pod.node);
    for (const g of pod.grants) gpus.set(g.gpu, (gpus.get(g.gpu) || 0) + g.milli);
  }
  return byNode;
}
const names = devices => devices.map(d => d.profile + " at " + d.start).join(", ") || "none";
// A partitioned GPU, a bar per memory unit: dark where pods or claims have the device, light where
// it is free, white where nothing is partitioned.
function cutGpu(use, offered) {
  const cell = document.createElement("div");
  cell.className = offered && offered.length === 0 ? "gpu cut sick" : "gpu cut";
  cell.title = "GPU " + use.gpu + ", taken: " + names(use.taken) + "; free: " + names(use.free) +
    (offered && offered.length === 0 ? "; nothing of it is offered" : "");
  const units = Array.from({length: use.units}, () => document.createElement("b"));
  for (const kind of ["free", "taken"]) {
    for (const device of use[kind]) {
      for (let i = 0; i < device.size; ++i) {
        units[device.start + i].className = i === 0 ? kind + " first" : kind;
      }
    }
  }
  cell.append(...units);
  return cell;
}
function draw(snapshot) {
  const byNode = used(snapshot);
  let cut = 0, units = 0, unitsTaken = 0;
  let total = 0, taken = 0, idle = 0;
  const box = document.createDocumentFragment();
  snapshot.nodes.forEach((node, n) => {
    const gpus = byNode.get(node.name) || new Map();
    const row = document.createElement("div");
    row.className = node.ready ? "node" : "node off";
    const name = document.createElement("span");
    name.textContent = node.name;
    name.title = node.name + " " + node.gpu_model;
    row.append(name);
    node.gpus.forEach((gpu, i) => {
      const milli = gpus.get(i) || 0;
      total += 1; taken += milli / 1000; idle += milli === 0 ? 1 : 0;
      const cell = document.createElement("div");
      cell.className = gpu.healthy ? "gpu" : "gpu sick";
      cell.title = "GPU " + i + ": " + milli + " of 1000";
      const fill = document.createElement("i");
      fill.style.height = Math.min(milli / 10, 100) + "%";
      cell.append(fill);
      row.append(cell);
    });
    if (node.places && node.places.count > 0) {
      const cell = document.createElement("span");
      const on = node.places.gpus ? ` on ${node.places.gpus} GPUs` : "";
      cell.textContent = `${node.places.taken} of ${node.places.count} places${on}`;
      cell.title = [node.places.sharing, node.places.memory_mib && node.places.memory_mib + " MiB each"]
        .filter(Boolean).join(", ");
      row.append(cell);
    }
    (node.mig_use || []).forEach((use, i) => {
      cut += 1; units += use.units;
      for (const device of use.taken) unitsTaken += device.size;
      row.append(cutGpu(use, node.mig.gpus[i].offered));
    });
    if (n < most) box.append(row);
  });
  document.getElementById("nodes").replaceChildren(box);
  document.getElementById("sum").textContent =
    `${snapshot.nodes.length} nodes, ${snapshot.pods.length} pods, ${taken.toFixed(1)} of ` +
    `${total} GPUs allocated, ${idle} with nothing on them` +
    (cut > 0 ? `; ${unitsTaken} of ${units} memory units of ${cut} GPUs that are cut` : "") +
    (snapshot.nodes.length > most ? ` (the first ${most} nodes are drawn)` : "");
}
function advise(advices) {
  document.getElementById("advice").textContent = advices.length === 0 ? "" :
    "Idle nodes that would take waiting pods if cut otherwise: " +
    advices.map(a => `${a.node} to ${a.config} (${a.fits} pods)`).join(", ");
}
const tags = new Map();  // ETag by page
// Calls `show` with the page if it has changed.
async function look(path, show) {
  const known = tags.has(path) ? {"If-None-Match": tags.get(path)} : {};
  const answer = await fetch(path, {cache: "no-store", headers: known});
  if (answer.status === 304) return;
  if (!answer.ok) throw new Error("status " + answer.status);
  show(await answer.json());
  tags.set(path, answer.headers.get("ETag"));
}
async function refresh() {
  try {
    await look("/debug/snapshot", draw);
    await look("/debug/repartition", advise);
  } catch (problem) {
    document.getElementById("sum").textContent = "no answer: " + problem;
    tags.clear();
  }
  setTimeout(refresh, 3000);
}
refresh();
</script>
</html>
)html";
}

}  // namespace berth
