// The picture: what /debug/live answers, in rows. Nodes whose GPUs look alike share one count of them.
"use strict";

const countsOf = (() => {
  const known = new Map();
  return cells => {
    let counts = known.get(cells);
    if (!counts) {
      if (known.size > 20000) known.clear();
      known.set(cells, counts = countCells(cells));
    }
    return counts;
  };
})();

// The GPUs of a node one by one: "." or "#", or the units of a partitioned one: "TtttFf.F".
function gpusOf(cells) {
  return cells.match(/\[[^\]]*\]|./g) || [];
}

function countCells(cells) {
  const counts = {gpus: 0, held: 0, gang: 0, planned: 0, part: 0, idle: 0, useless: 0, sick: 0, mig: 0, units: 0, unitsHeld: 0};
  for (const gpu of gpusOf(cells)) {
    if (gpu[0] === "[") {
      counts.mig += 1;
      for (const unit of gpu.slice(1, -1)) {
        counts.units += 1;
        if (unit === "T" || unit === "t") counts.unitsHeld += 1;
      }
      continue;
    }
    counts.gpus += 1;
    if (gpu === ".") counts.idle += 1;
    else if (gpu === "u") counts.useless += 1;
    else if (gpu === "x") counts.sick += 1;
    else if (gpu === "#") counts.held += 1;
    else if (gpu === "g") counts.gang += 1;
    else if (gpu === "h") counts.planned += 1;
    else counts.part += gpu === "a" ? 1 : Number(gpu) / 10;
  }
  return counts;
}

const stateNames = {".": "", n: "not ready", r: "kubelet refuses GPU pods", d: "GPUs unhealthy", c: "cordoned", f: "managed by another scheduler", x: "number of GPUs contradictory"};

// {nodes: [{name, model, place, state, cells, counts, shared}], waiting, gangs, bound, recuts, top, ...}
function readPicture(live) {
  const cells = live.cells === "" ? [] : live.cells.split(" ");
  const nodes = live.names.map((name, i) => ({
    name,
    model: live.model_names[live.model[i]],
    place: live.place_names[live.place[i]],
    state: stateNames[live.flags[i]] || "",
    cells: cells[i] || "",
    counts: countsOf(cells[i] || ""),
    shared: null,
  }));
  for (const [at, taken, places, gpus] of live.shared) nodes[at].shared = {taken, places, gpus};
  return {...live, nodes, byName: new Map(nodes.map(node => [node.name, node]))};
}

// [[key, rows], ...] in the order in which the keys come.
function gather(rows, keyOf) {
  const groups = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return [...groups];
}

const kCounted = Object.keys(countCells(""));

function sumUp(nodes) {
  const times = new Map();  // of thousands of nodes most look like others
  for (const {counts} of nodes) times.set(counts, (times.get(counts) || 0) + 1);
  const sum = countCells("");
  for (const [counts, number] of times) {
    for (const key of kCounted) sum[key] += number * counts[key];
  }
  return sum;
}

// "5 of 8 GPUs held, 3 idle".
function nodeText(node) {
  const {counts, shared} = node;
  const parts = [];
  const held = counts.held + counts.gang + counts.part;
  if (counts.gpus > 0) {
    parts.push(`${short(held)} of ${count(counts.gpus, "GPU")} held`);
    if (counts.planned > 0) parts.push(`${counts.planned} reserved for a gang`);
    if (counts.idle > 0) parts.push(`${counts.idle} idle`);
    if (counts.useless > 0) parts.push(`${counts.useless} idle but unusable`);
    if (counts.sick > 0) parts.push(`${counts.sick} unhealthy`);
  }
  if (counts.mig > 0) parts.push(`${counts.unitsHeld} of ${counts.units} memory slices of ${count(counts.mig, "partitioned GPU")} held`);
  if (shared) parts.push(`${shared.taken} of ${count(shared.places, "GPU replica")} taken` + (shared.gpus ? ` on ${count(shared.gpus, "GPU")}` : ""));
  if (node.state) parts.push(node.state);
  return parts.join(", ");
}

function gpuText(gpu, index) {
  const head = "GPU " + index + ": ";
  if (gpu[0] === "[") {
    const devices = [...gpu.slice(1, -1).matchAll(/Tt*|Ff*/g)].map(found => {
      const size = found[0].length;
      return `${found[0][0] === "T" ? "held" : "free"} device of ${count(size, "memory slice")} at ${found.index}`;
    });
    return head + "partitioned, " + (devices.join("; ") || "no MIG devices");
  }
  const texts = {
    ".": "idle", u: "idle but unusable", x: "unhealthy", "#": "held", g: "held by a pod of a gang",
    h: "reserved for a gang that has not started", a: "shared, 100 % held",
  };
  return head + (texts[gpu] || `shared, about ${gpu}0 % held`);
}
