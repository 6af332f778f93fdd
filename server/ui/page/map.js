// The map: a cell per GPU, a row of cells per node, a canvas per group of nodes. Only groups in view are drawn, and of
// these, after a refresh, only the nodes that have changed.
"use strict";

const kColours = ["held", "gang", "part", "plan", "idle", "idle-edge", "useless", "sick", "mig", "mig-free", "gap", "mark", "ink", "card"];

const map = {
  box: null, groups: [], cell: 8, colours: {}, sprites: new Map(), cursor: null, matches: null, onOpen: null,
  layoutKey: "", watcher: null,
};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of kColours) map.colours[name] = style.getPropertyValue("--" + name).trim();
  map.sprites.clear();
}

// Draws one GPU. The shapes differ beside the colours: hollow, full, notched, filled from below, struck out, crossed.
function paintGpu(pen, gpu, x, y, width, size) {
  const c = map.colours;
  const fill = (colour, px, py, w, h) => { pen.fillStyle = colour; pen.fillRect(px, py, w, h); };
  if (gpu[0] === "[") {
    const units = gpu.length - 2;
    fill(c.gap, x, y, width, size);
    for (const {0: device, index} of gpu.slice(1, -1).matchAll(/Tt*|Ff*/g)) {
      const from = Math.round(width * index / units), to = Math.round(width * (index + device.length) / units);
      fill(device[0] === "T" ? c.mig : c["mig-free"], x + from, y, Math.max(1, to - from - (to - from > 1 && to < width ? 1 : 0)), size);
    }
    pen.lineWidth = 1;
    pen.strokeStyle = c["idle-edge"];
    pen.strokeRect(x + .5, y + .5, width - 1, size - 1);
    return;
  }
  const line = (...points) => {
    pen.beginPath();
    for (let i = 0; i < points.length; i += 2) pen[i % 4 === 0 ? "moveTo" : "lineTo"](x + points[i], y + points[i + 1]);
    pen.stroke();
  };
  const edge = colour => { pen.lineWidth = 1; pen.strokeStyle = colour; pen.strokeRect(x + .5, y + .5, size - 1, size - 1); };
  pen.lineWidth = size > 10 ? 2 : 1.3;
  if (gpu === ".") {
    fill(c.idle, x, y, size, size);
    edge(c["idle-edge"]);
  } else if (gpu === "#") {
    fill(c.held, x, y, size, size);
  } else if (gpu === "g") {  // a dot in the middle
    fill(c.gang, x, y, size, size);
    const dot = Math.max(2, Math.round(size / 3));
    fill(c.mark, x + (size - dot >> 1), y + (size - dot >> 1), dot, dot);
  } else if (gpu === "h") {
    fill(c.idle, x, y, size, size);
    pen.strokeStyle = c.plan;
    line(1, size - 1, size - 1, 1);
    line(1, size / 2, size / 2, 1);
    line(size / 2, size - 1, size - 1, size / 2);
    edge(c.plan);
  } else if (gpu === "u") {
    fill(c.gap, x, y, size, size);
    pen.strokeStyle = c["idle-edge"];
    line(1, size - 1, size - 1, 1);
  } else if (gpu === "x") {
    fill(c.card, x, y, size, size);
    pen.strokeStyle = c.sick;
    line(1, 1, size - 1, size - 1, 1, size - 1, size - 1, 1);
    edge(c.sick);
  } else {
    fill(c.idle, x, y, size, size);
    edge(c["idle-edge"]);
    const high = Math.max(1, Math.round(size * (gpu === "a" ? 1 : Number(gpu) / 10)));
    fill(c.part, x, y + size - high, size, high);
  }
}

// A cell as a picture that is copied: thousands look the same.
function spriteOf(gpu, width, size, scale) {
  const key = gpu + width + "/" + size + "/" + scale;
  let sprite = map.sprites.get(key);
  if (!sprite) {
    sprite = document.createElement("canvas");
    sprite.width = width * scale;
    sprite.height = size * scale;
    const pen = sprite.getContext("2d");
    pen.scale(scale, scale);
    paintGpu(pen, gpu, 0, 0, width, size);
    map.sprites.set(key, sprite);
  }
  return sprite;
}

// The replicas of a node's shared GPUs as cells: tenths that are taken.
function drawnGpus(node) {
  const gpus = gpusOf(node.cells);
  if (!node.shared) return gpus;
  const {taken, places, gpus: number} = node.shared;
  const tenth = Math.min(10, Math.ceil(10 * taken / places));
  const cell = taken === 0 ? (node.state ? "u" : ".") : tenth === 10 ? "a" : String(tenth);
  return gpus.concat(new Array(Math.min(number || 1, 64)).fill(cell));
}

const kInRow = 8;

// Cells of a node beside and below each other: [{gpu, x, y, width}], and how large all of it is.
function arrange(gpus, cell) {
  const placed = [];
  let x = 0, y = 0, wide = 0, inRow = 0;
  gpus.forEach((gpu, index) => {
    const units = gpu[0] === "[" ? gpu.length - 2 : 0;
    const width = units > 0 ? Math.max(2 * cell, 2 * units) : cell;
    inRow += units > 0 ? 2 : 1;
    if (inRow > kInRow) { x = 0; y += cell + 1; inRow = units > 0 ? 2 : 1; }
    placed.push({gpu, index, x, y, width});
    wide = Math.max(wide, x + width);
    x += width + (units > 0 ? 3 : 1);
  });
  return {placed, width: wide, height: y + cell};
}

function groupKey(node, by) {
  if (by === "none") return "all nodes";
  const model = node.model || "unknown model", place = node.place || "";
  if (by === "model") return model;
  if (by === "place") return place || "unknown location";
  return place ? model + " \u00b7 " + place : model;
}

// Beyond so many places the map is by model alone: each place has a line of its own, and many of them few nodes.
const kMostPlaces = 50;

function groupsOf(nodes, by) {
  if (by === "auto") {
    const both = groupsOf(nodes, "both");
    return both.length > kMostPlaces ? groupsOf(nodes, "model") : both;
  }
  return gather(nodes, node => groupKey(node, by)).sort(([a], [b]) => a.localeCompare(b, "en", {numeric: true}));
}

const fittingCell = nodes => nodes.length > 2000 ? 6 : nodes.length > 400 ? 8 : nodes.length > 48 ? 14 : map.box.clientWidth < 420 ? 18 : 22;

// A number that is another one when a node has other numbers of GPUs.
function shapeOf(nodes) {
  let shape = 0;
  for (const {counts, shared} of nodes) {
    shape = (Math.imul(shape, 31) + counts.gpus + Math.imul(counts.mig, 64) + Math.imul(counts.units, 4096) + (shared ? shared.gpus << 20 : 0)) | 0;
  }
  return shape;
}

// Builds what is missing, and draws what has changed.
function drawMap(picture, by, wantedCell) {
  map.cell = wantedCell || fittingCell(picture.nodes);
  const width = Math.max(200, map.box.clientWidth);
  const layoutKey = [by, map.cell, width, devicePixelRatio, picture.set, shapeOf(picture.nodes)].join();
  if (layoutKey === map.layoutKey) {
    const byName = picture.byName;
    for (const group of map.groups) {
      group.nodes = group.nodes.map(node => byName.get(node.name));
      labelGroup(group);
      if (map.cursor?.group === group) sayCursor();
      if (group.seen) drawGroup(group, false);
    }
    return;
  }
  map.layoutKey = layoutKey;
  const hadFocus = map.box.contains(document.activeElement), at = map.cursor && map.cursor.group.nodes[map.cursor.at].name;
  map.watcher?.disconnect();
  map.watcher = new IntersectionObserver(seeGroups, {rootMargin: "400px"});
  map.groups = groupsOf(picture.nodes, by).map(([key, nodes], i) => layOut(key, nodes, width, i));
  map.cursor = null;
  map.box.replaceChildren(...map.groups.map(group => group.box));
  for (const group of map.groups) map.watcher.observe(group.box);
  if (at) goToNode(at, hadFocus);
}

// Where the keyboard is, and whether it is there now.
function goToNode(name, focuses) {
  for (const group of map.groups) {
    const at = group.nodes.findIndex(node => node.name === name);
    if (at < 0) continue;
    map.cursor = {group, at};
    for (const other of map.groups) other.canvas.tabIndex = other === group ? 0 : -1;
    if (focuses) group.canvas.focus({preventScroll: true});
    return;
  }
}

function layOut(key, nodes, width, position) {
  const named = map.cell >= 18;
  const group = {key, nodes, position, named, seen: false, drawn: [], label: named ? 15 : 0};
  let wide = named ? 7 * 16 : 0, high = 0;
  for (const node of nodes) {
    const size = arrange(drawnGpus(node), map.cell);
    wide = Math.max(wide, size.width);
    high = Math.max(high, size.height);
  }
  group.stepX = wide + (map.cell > 8 ? 12 : map.cell - 2);
  group.stepY = high + group.label + (map.cell > 8 ? 8 : map.cell / 2);
  group.columns = Math.max(1, Math.floor((width + group.stepX - wide) / group.stepX));
  group.rows = Math.ceil(nodes.length / group.columns);
  group.wide = wide;
  group.high = high + group.label;
  // For those who do not see it, a list of nodes with one entry at a time.
  group.option = make("div", {role: "option", id: "map-node-" + position, "aria-selected": "true", "aria-setsize": nodes.length});
  group.canvas = make("canvas", {
    role: "listbox", "aria-roledescription": "map of nodes", tabindex: position === 0 ? "0" : "-1", "aria-describedby": "map-help",
    onmousemove: event => pointAt(group, event), onmouseleave: hideTip,
    onclick: event => { const at = nodeAt(group, event); if (at) map.onOpen(at.node.name); },
    onkeydown: event => stepCursor(group, event), onfocus: () => showCursor(group, map.cursor?.group === group ? map.cursor.at : 0),
    onblur: () => map.ring?.remove(),
  }, group.option);
  const cssWidth = Math.min(group.columns, nodes.length) * group.stepX, cssHeight = group.rows * group.stepY;
  group.canvas.style.width = cssWidth + "px";
  group.canvas.style.height = cssHeight + "px";
  group.size = [cssWidth, cssHeight];
  group.plan = make("div", {class: "plan"}, group.canvas);
  group.head = make("span", {});
  group.box = make("div", {class: "group"}, make("h3", {}, key, " ", group.head), group.plan);
  labelGroup(group);
  return group;
}

function labelGroup(group) {
  const sum = sumUp(group.nodes);
  const parts = [count(group.nodes.length, "node")];
  if (sum.gpus > 0) parts.push(`${sum.idle.toLocaleString("en")} of ${count(sum.gpus, "GPU")} idle`);
  if (sum.mig > 0) parts.push(count(sum.mig, "partitioned GPU"));
  const label = parts.join(", ");
  if (label === group.said) return;
  group.said = label;
  setText(group.head, label);
  group.canvas.setAttribute("aria-label", `Map of ${group.key}: ${label}`);
}

function seeGroups(entries) {
  for (const entry of entries) {
    const group = map.groups.find(one => one.box === entry.target);
    if (!group) continue;
    group.seen = entry.isIntersecting;
    if (group.seen) drawGroup(group, group.drawn.length === 0);
  }
}

// Canvases have a largest size; a very high one is drawn coarser.
const scaleOf = group => Math.min(devicePixelRatio || 1, 16000 / group.size[1]);

function drawGroup(group, everything) {
  const scale = scaleOf(group);
  const pen = group.canvas.getContext("2d", {alpha: true});
  if (everything) {
    group.canvas.width = Math.ceil(group.size[0] * scale);
    group.canvas.height = Math.ceil(group.size[1] * scale);
    group.drawn = [];
  }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  group.nodes.forEach((node, i) => {
    const faint = map.matches !== null && !map.matches.has(node.name);
    const look = (faint ? "-" : "+") + node.cells + node.state + (node.shared ? node.shared.taken : "");
    if (group.drawn[i] === look) return;
    group.drawn[i] = look;
    const x = (i % group.columns) * group.stepX, y = Math.floor(i / group.columns) * group.stepY;
    if (!everything) pen.clearRect(x, y, group.wide + 1, group.high + 1);  // on paper it would wipe out all that is there
    pen.globalAlpha = faint ? .18 : 1;
    if (group.named) {
      pen.fillStyle = map.colours.ink;
      pen.font = "11px system-ui, sans-serif";
      pen.fillText(shortName(node.name, 18), x, y + 10);
    }
    for (const one of arrange(drawnGpus(node), map.cell).placed) {
      pen.drawImage(spriteOf(one.gpu, one.width, map.cell, scale), x + one.x, y + group.label + one.y, one.width, map.cell);
    }
    pen.globalAlpha = 1;
  });
}

// Of long names the ends tell.
const shortName = (name, most) => name.length <= most ? name : name.slice(0, most / 2 - 1) + "\u2026" + name.slice(-most / 2);

function nodeAt(group, event) {
  const x = event.offsetX, y = event.offsetY;
  const column = Math.floor(x / group.stepX), row = Math.floor(y / group.stepY);
  const at = row * group.columns + column;
  if (column >= group.columns || at >= group.nodes.length || at < 0) return null;
  const node = group.nodes[at];
  const inX = x - column * group.stepX, inY = y - row * group.stepY - group.label;
  const gpu = arrange(drawnGpus(node), map.cell).placed.find(
    one => inX >= one.x && inX < one.x + one.width + 1 && inY >= one.y && inY < one.y + map.cell + 1);
  return {node, at, gpu};
}

function pointAt(group, event) {
  const found = nodeAt(group, event);
  if (!found) return hideTip();
  const tip = byId("tip");
  tip.replaceChildren(make("div", {}, make("b", {}, found.node.name), " ", found.node.model), make("div", {}, nodeText(found.node)));
  if (found.gpu && !found.node.shared) tip.append(make("div", {}, gpuText(found.gpu.gpu, found.gpu.index)));
  tip.hidden = false;
  const right = event.clientX + 14 + tip.offsetWidth > innerWidth;
  tip.style.left = Math.max(4, right ? event.clientX - tip.offsetWidth - 10 : event.clientX + 14) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 4) + "px";
}

function hideTip() {
  byId("tip").hidden = true;
}

// What the entry of the list is now.
function sayCursor() {
  const {group, at} = map.cursor, node = group.nodes[at];
  group.option.setAttribute("aria-posinset", at + 1);
  setText(group.option, node.name + ": " + nodeText(node));
  group.canvas.setAttribute("aria-activedescendant", group.option.id);
}

function showCursor(group, at) {
  map.cursor = {group, at};
  for (const other of map.groups) other.canvas.tabIndex = other === group ? 0 : -1;
  map.ring ||= make("div", {class: "ring"});
  const left = (at % group.columns) * group.stepX, top = Math.floor(at / group.columns) * group.stepY;
  Object.assign(map.ring.style, {
    left: left - 3 + "px", top: top - 2 + "px", width: group.wide + 6 + "px", height: group.high + 4 + "px",
  });
  group.plan.append(map.ring);
  map.ring.scrollIntoView({block: "nearest"});
  sayCursor();
}

function stepCursor(group, event) {
  const at = map.cursor?.group === group ? map.cursor.at : 0;
  const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: group.columns, ArrowUp: -group.columns, Home: -at, End: group.nodes.length - 1 - at};
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    return map.onOpen(group.nodes[at].name);
  }
  if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const next = at + steps[event.key];
  const other = next < 0 ? map.groups[group.position - 1] : next >= group.nodes.length ? map.groups[group.position + 1] : null;
  if (other) {
    map.cursor = {group: other, at: next < 0 ? other.nodes.length - 1 : 0};
    other.canvas.tabIndex = 0;
    other.canvas.focus();
    return showCursor(other, map.cursor.at);
  }
  showCursor(group, Math.min(Math.max(next, 0), group.nodes.length - 1));
}

// Names of the nodes that are looked for, or null: all.
function highlight(matches) {
  map.matches = matches;
  for (const group of map.groups) if (group.seen) drawGroup(group, false);
}

// For paper, which shows all of them.
function drawAllGroups() {
  for (const group of map.groups) drawGroup(group, group.drawn.length === 0);
}

function repaintMap() {
  readColours();
  for (const group of map.groups) {
    group.drawn = [];
    if (group.seen) drawGroup(group, true);
  }
  drawLegend();
}

const kLegend = [
  ["#", "held by a pod"], ["g", "held by a pod of a gang"], ["h", "reserved for a gang that has not started"], ["5", "shared; the fill shows how much is held"],
  [".", "idle"], ["u", "idle but unusable: its node takes no pods, or has no CPU or memory left"], ["x", "unhealthy"],
  ["[TtttFf..]", "MIG-partitioned: devices held and free, from memory slice 0 on the left"],
];

function drawLegend() {
  const scale = devicePixelRatio || 1;
  byId("legend").replaceChildren(...kLegend.map(([gpu, text]) => {
    const width = gpu[0] === "[" ? 32 : 16;
    const canvas = make("canvas", {width: width * scale, height: 16 * scale, "aria-hidden": "true"});
    canvas.style.width = width + "px";
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    paintGpu(pen, gpu, 0, 0, width, 16);
    return make("li", {}, canvas, text);
  }));
}
