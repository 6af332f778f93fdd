// The page put together: asks every few seconds while somebody looks, draws what has changed, finds and opens things.
"use strict";

const kEvery = 3000, kSoon = 700, kMostPause = 30000, kPatience = 15000;
const embedded = byId("data");  // of a file that shows one picture and has no server
const isLive = embedded === null;
const page = {picture: null, set: null, tag: null, at: null, failures: 0, timer: null, asking: false, drawn: 0};
const tables = {};

function openTables() {
  const isOpen = key => row => detail.open?.key === key && detail.open.value === (row.pod || row.name || row.gang);
  const make = (id, columns, options) => { tables[id] = new Table(byId(id + "-table"), columns, options); };
  make("waiting", waitingColumns, {key: row => row.key || row.pod, name: "Waiting pods", empty: "No pod waits for a GPU.", cards: true, most: kManyWait, isOpen: isOpen("pod")});
  make("models", modelColumns, {key: row => row.model, name: "GPUs by model", empty: "No node with GPUs is known.", most: 100});
  const most = 10, ownerKey = row => row.name;
  make("namespaces", ownerColumns("namespace"), {key: ownerKey, name: "GPUs by namespace", empty: "No pod holds or requests GPUs.", most});
  make("classes", ownerColumns("class"), {key: ownerKey, name: "GPUs by workload class", empty: "No pod has a workload class.", most});
  make("nodes", nodeColumns, {key: row => row.name, name: "Nodes", empty: "No node with GPUs is known.", cards: true, most: 12, isOpen: isOpen("node")});
  make("groups", groupColumns, {key: row => row.gang, name: "Gangs", empty: "No gang.", cards: true, isOpen: isOpen("group")});
  make("bound", boundColumns, {key: row => row.pod + row.since, name: "Last decisions", empty: "No decision yet.", cards: true, most: 12, isOpen: isOpen("pod")});
  make("room", roomColumns, {key: row => row.number, name: "Moves that make room", empty: "None.", cards: true});
  make("recuts", recutColumns, {key: row => row.node, name: "Repartitioning", empty: "None."});
}

const wanted = () => byId("query").value.trim().toLowerCase();

// Rows with every word of the query in their texts.
function matching(rows, texts) {
  const words = wanted().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter(row => {
    const text = texts(row).join(" ").toLowerCase();
    return words.every(word => text.includes(word));
  });
}

// In a view those of its pods; what is idle or unhealthy is the cluster's.
function drawSums(picture) {
  const sum = sumUp(picture.nodes), mine = inView(picture.waiting);
  const held = view.kind ? view.told?.gpus || 0 : sum.held + sum.gang + sum.part;
  const waiting = view.kind ? mine.length : picture.waiting_in_all;
  const asked = mine.reduce((gpus, row) => gpus + (row.gated ? 0 : row.gpus || 0), 0);
  const oldest = Math.min(...mine.filter(row => row.since && !row.gated).map(row => row.since));
  const card = (number, text, more) => make("div", {class: "sum"}, make("b", {}, number), make("span", {}, text), more || "");
  const cards = [
    card(waiting.toLocaleString("en"), (waiting === 1 ? "pod waits" : "pods wait") + (asked > 0 ? `, for ${count(Math.round(asked * 10) / 10, "GPU")}` : "") + (isFinite(oldest) ? `; the oldest ${since(oldest)}` : ""),
      view.kind ? "" : lineOfDay("waiting pods", sample => sample[1])),
    card(percent(held, sum.gpus), `${short(held)} of ${count(sum.gpus, "GPU")} held${view.kind ? " by " + view.name : ""}`,
      view.kind ? "" : lineOfDay("GPUs held, in %", sample => sample[2])),
    card(sum.idle.toLocaleString("en"), "idle and usable"),
    card(sum.useless.toLocaleString("en"), "idle but unusable now"),
    card(sum.sick.toLocaleString("en"), "unhealthy"),
  ];
  if (sum.mig > 0 && !view.kind) cards.push(card(percent(sum.unitsHeld, sum.units), `of ${count(sum.mig, "partitioned GPU")} held`));
  const split = [["held", sum.held], ["gang", sum.gang], ["part", sum.part], ["plan", sum.planned], ["idle", sum.idle], ["useless", sum.useless], ["sick", sum.sick]];
  const bar = make("div", {class: "split", "aria-hidden": "true"}, split.filter(([, gpus]) => gpus > 0).map(([colour, gpus]) => {
    const part = make("i");
    part.style.flexGrow = gpus;
    part.style.background = `var(--${colour})`;
    return part;
  }));
  const shown = sum.gpus > 0 && !view.kind ? [...cards, bar] : cards;
  byId("sums").replaceChildren(...shown);
}

// The last day as this browser has seen it: [minute, waiting pods, % of GPUs held] every five minutes.
const kSampleEvery = 5, kSamples = 288, kSamplesKey = "berth-day " + location.pathname;
let samples = [];
function takeSample(picture) {
  if (picture.not_ready) return;
  const sum = sumUp(picture.nodes), minute = Math.floor(Date.now() / 60000), last = samples[samples.length - 1];
  if (last && minute - last[0] < kSampleEvery) return;
  samples = [...samples, [minute, picture.waiting_in_all, sum.gpus > 0 ? Math.round(100 * (sum.held + sum.gang + sum.part) / sum.gpus) : 0]]
    .filter(sample => minute - sample[0] < kSamples * kSampleEvery);
  try {
    localStorage.setItem(kSamplesKey, JSON.stringify(samples));
  } catch { /* a browser that keeps nothing: what this tab has seen */ }
  drawSums(picture);
}
function keptSamples() {
  try {
    const kept = JSON.parse(localStorage.getItem(kSamplesKey));
    return Array.isArray(kept) ? kept.slice(-kSamples).filter(one => Array.isArray(one) && one.length === 3 && one.every(Number.isFinite)) : [];
  } catch {
    return [];
  }
}

// A curve with gaps where nobody looked; "": there is too little to see.
function lineOfDay(what, read) {
  if (!isLive || samples.length < 3) return "";
  const wide = 120, high = 22, end = samples[samples.length - 1][0], most = Math.max(1, ...samples.map(read));
  let path = "", before = null;
  for (const sample of samples) {
    const x = wide * (1 - (end - sample[0]) / (kSamples * kSampleEvery)), y = high - 1 - (high - 2) * read(sample) / most;
    path += (before !== null && sample[0] - before <= 3 * kSampleEvery ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1);
    before = sample[0];
  }
  const values = samples.map(read), text = `${what} of the last day, as this browser saw them: ${Math.min(...values)} to ${Math.max(...values)}`;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of Object.entries({class: "day", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": text})) svg.setAttribute(key, value);
  const line = document.createElementNS(svg.namespaceURI, "path"), title = document.createElementNS(svg.namespaceURI, "title");
  line.setAttribute("d", path);
  title.textContent = text;
  svg.append(title, line);
  return svg;
}

function draw() {
  const picture = page.picture;
  if (!picture) return;
  byId("main").hidden = Boolean(picture.not_ready);  // it would look like an empty cluster
  if (picture.not_ready) return;
  drawSums(picture);
  drawLists();
  drawMap(picture, byId("group-by").value, Number(byId("size").value));
  const hidden = picture.without_gpus ? `, ${count(picture.without_gpus, "node")} without GPUs left out` : "";
  setText(byId("map-sum"), count(picture.nodes.length, "node") + hidden);
  setText(byId("made"), `Berth ${picture.berth || ""}. What to do about alerts: docs/alerts.md; dashboards for Grafana: docs/monitoring.md.`);
  setText(byId("cluster"), picture.cluster || "");
  const title = picture.cluster ? picture.cluster + " \u00b7 Berth" : "Berth";
  if (document.title !== title) document.title = title;
  page.drawn = Date.now();
}

// All that a search and a view narrow down.
function drawLists() {
  const picture = page.picture;
  const mine = inView(picture.waiting), own = viewNodes();
  const waiting = matching(mine, row => [row.pod, row.gang || "", row.asks, row.why || "", ...(row.models || [])]);
  const nodes = matching(own ? picture.nodes.filter(node => own.has(node.name)) : picture.nodes, row => [row.name, row.model, row.place, row.state]);
  // Of a gang and of a decision no class is known.
  const groups = view.kind === "class" ? [] : matching(inView(picture.gangs), row => [row.gang, row.state]);
  const bound = view.kind === "class" ? [] : matching(inView(picture.bound), row => [row.pod, row.node]);
  const looks = wanted() !== "", narrows = looks || own !== null;
  const namespaces = matching(ownerRows(picture.namespaces || [], row => row.pod.split("/")[0]), row => [row.name]);
  const classes = matching(ownerRows(picture.classes || [], row => row.class), row => [row.name]);
  drawView(mine);
  tables.namespaces.show(namespaces);
  tables.classes.show(classes);
  tables.waiting.show(waitingRows(waiting, byId("waiting-by").value), looks && mine.length > 0 ? "No waiting pod matches." : "No pod waits for a GPU.");
  tables.models.show(matching(picture.top, row => [row.model]), looks ? "No model matches." : undefined);
  tables.nodes.show(nodes, looks ? "No node matches." : undefined);
  tables.groups.show(groups);
  tables.bound.show(bound);
  tables.recuts.show(picture.recuts);
  byId("groups-section").hidden = groups.length === 0;
  byId("bound-section").hidden = bound.length === 0;
  byId("recuts-section").hidden = picture.recuts.length === 0;
  byId("namespaces-section").hidden = namespaces.length === 0;
  byId("classes-section").hidden = classes.length === 0;
  drawRoom(picture.room);
  const listed = picture.waiting.length < picture.waiting_in_all ? `the ${picture.waiting.length.toLocaleString("en")} that have waited longest, of ${picture.waiting_in_all.toLocaleString("en")}` : "";
  setText(byId("waiting-sum"), listed);
  setText(byId("nodes-sum"), narrows ? `${nodes.length.toLocaleString("en")} of ${count(picture.nodes.length, "node")}` : "");
  const theirs = looks && running.text === wanted() ? running.pods.map(pod => pod.node) : [];
  const shown = new Set([...nodes.map(node => node.name), ...theirs]);
  highlight(narrows && shown.size > 0 ? shown : null);
  sayFound(looks, [[waiting.length, "waiting pod"], [nodes.length, "node"], [namespaces.length, "namespace"], [groups.length, "gang"], [bound.length, "decision"]]);
}

// Of a plan that has ended the last state of its moves stays.
function drawRoom(room) {
  byId("room-section").hidden = !room;
  if (!room) return;
  tables.room.show(room.moves.map((move, i) => ({...move, number: i + 1})));
  const goal = (room.gang ? "gang " : "") + room.for;
  setText(byId("room-sum"), !room.ended ? `for ${goal}, begun ${since(room.since)} ago` : `for ${goal}: ${room.done ? "done" : "given up"}, ${room.ended}`);
}

// Pods that run are in no table: the server is asked for their names once the text stays for a moment.
const running = {text: "", pods: [], more: 0};
async function findRunning() {
  const text = wanted();
  if (!isLive || running.text === text) return;
  Object.assign(running, {text, pods: [], more: 0});
  if (!/^[a-z0-9./-]{2,}$/.test(text)) return;
  try {
    const answer = await fetch("debug/pods?" + text, {cache: "no-store"});
    if (!answer.ok || wanted() !== text) return;
    const told = await answer.json();
    Object.assign(running, {pods: told.pods, more: told.more});
    drawLists();
  } catch { /* the page says that the server does not answer */ }
}

function sayFound(looks, numbers) {
  const found = byId("found");
  found.hidden = !looks;
  if (!looks) return;
  const {pods, more} = running.text === wanted() ? running : {pods: [], more: 0};
  const all = [...numbers.filter(([number]) => number > 0).map(([number, what]) => count(number, what)), pods.length > 0 ? count(pods.length + more, "pod") + " with a node" : ""].filter(Boolean);
  const links = pods.slice(0, 8).flatMap(({pod, node}) => [linkTo("pod", pod), " on ", linkTo("node", node), ", "]).slice(0, -1);
  const rest = pods.length + more - Math.min(pods.length, 8);
  found.replaceChildren(all.length > 0 ? all.join(", ") + " found. " : "Nothing found. ", ...links, rest > 0 ? ` and ${rest.toLocaleString("en")} more` : "");
}

// Enter opens what is meant without doubt.
function openFound() {
  const text = byId("query").value.trim();
  if (text === "" || !page.picture) return;
  if (page.picture.byName.has(text)) return void (location.hash = addressOf("node", text));
  if (page.picture.waiting.some(row => row.pod === text) || (isLive && /^[^\s/]+\/[^\s/]+$/.test(text))) {
    return void (location.hash = addressOf("pod", text));
  }
  const pods = [...tables.waiting.rows.filter(row => row.pod), ...(running.text === wanted() ? running.pods : [])];
  const rows = [...pods.map(row => ["pod", row.pod]), ...tables.nodes.rows.map(row => ["node", row.name])];
  if (rows.length === 1) location.hash = addressOf(...rows[0]);
}

const clockText = time => new Date(time).toLocaleTimeString("en-GB");

function sayStatus() {
  const status = byId("status"), trouble = byId("trouble");
  const picture = page.picture;
  if (!isLive) {
    status.className = "status still";
    return setText(status, picture.title || "snapshot");
  }
  const seconds = page.at === null ? 0 : (Date.now() - page.at) / 1000;
  const lost = page.failures > 0;
  status.className = lost || picture?.not_ready ? "status off" : "status";
  if (lost) {
    setText(status, page.at === null ? "no answer" : `last update ${age(seconds)} ago`);
    setText(trouble, `Berth does not answer (${page.problem}). ` +
      (page.at === null ? "Retrying." : `The page shows the state of ${clockText(page.at)} and retries.`));
  } else if (picture?.not_ready) {
    setText(status, "not the leader");
    setText(trouble, `This replica has nothing to show: ${picture.not_ready}. Open the page of the leader: the pod with the label berth.dev/leader.`);
  } else {
    setText(status, page.at === null ? "loading" : "live");
  }
  trouble.hidden = !lost && !picture?.not_ready;
}

// Takes what is new, if anything is. The set of nodes, most of it, comes again only when it is another.
async function look(signal) {
  const headers = page.tag ? {"If-None-Match": page.tag} : {};
  const answer = await fetch("debug/live" + (page.set ? "?set=" + page.set.set : ""), {cache: "no-store", headers, signal});
  if (answer.status === 304) return;
  if (!answer.ok) throw new Error("status " + answer.status);
  const live = await answer.json();
  page.tag = answer.headers.get("ETag");
  if (!live.names && page.set?.set !== live.set) {
    page.set = page.tag = null;
    return look(signal);
  }
  if (live.names) {
    const {set, names, model, place, model_names, place_names} = live;
    page.set = {set, names, model, place, model_names, place_names};
  }
  show(readPicture({...live, ...page.set}));
}

async function ask() {
  if (page.asking || document.hidden) return;
  page.asking = true;
  const patience = new AbortController();
  const bell = setTimeout(() => patience.abort(new Error("timeout")), kPatience);
  let pause = kEvery;
  try {
    await look(patience.signal);
    page.at = Date.now();
    page.failures = 0;
    lookAtView();
    takeSample(page.picture);
    if (page.picture.explains_more) pause = kSoon;
  } catch (problem) {
    page.failures += 1;
    page.problem = problem.message;
    pause = Math.min(kMostPause, kEvery * 2 ** (page.failures - 1));
  } finally {
    clearTimeout(bell);
    page.asking = false;
  }
  sayStatus();
  clearTimeout(page.timer);
  if (!document.hidden) page.timer = setTimeout(ask, pause);
}

function show(picture) {
  const began = performance.now(), isFirst = page.picture === null;
  page.picture = picture;
  draw();
  if (isFirst) showDetail(picture, isLive);  // what the address names
  // What is open is asked for again, not with every refresh: it costs the server more than the picture does.
  else if (detail.open && Date.now() - detail.seen > 10000) showDetail(picture, isLive);
  performance.measure("refresh", {start: began, end: performance.now()});
}

// Once a second while somebody looks: how old the picture is, and every half a minute all ages.
function tick() {
  if (document.hidden) return;
  if (isLive) sayStatus();
  if (page.picture && Date.now() - page.drawn > 30000) { drawSums(page.picture); drawLists(); page.drawn = Date.now(); }
}

let ticking = null;
function wake() {
  clearTimeout(page.timer);
  clearInterval(ticking);
  ticking = null;
  if (document.hidden) return;
  if (isLive) ask();
  ticking = setInterval(tick, 1000);
}

const kThemes = ["system", "light", "dark"];
let theme = "system";
function setTheme(chosen) {
  theme = chosen;
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText(byId("theme"), "Theme: " + theme);
  try {
    localStorage.setItem("berth-theme", theme);
  } catch { /* a file, or a browser that keeps nothing */ }
  repaintMap();
}
function keptTheme() {
  try {
    const kept = localStorage.getItem("berth-theme");
    return kThemes.includes(kept) ? kept : "system";
  } catch {
    return "system";
  }
}

// Paper is white, and shows the whole map.
function setPrinting(prints) {
  if (!prints && theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = prints ? "light" : theme;
  repaintMap();
  if (prints) drawAllGroups();
}

function start() {
  map.box = byId("map");
  map.onOpen = name => { location.hash = addressOf("node", name); };
  samples = keptSamples();
  readView();
  openTables();
  setTheme(keptTheme());
  byId("theme").onclick = () => setTheme(kThemes[(kThemes.indexOf(theme) + 1) % kThemes.length]);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaintMap);
  let later = null;
  byId("query").oninput = () => { clearTimeout(later); later = setTimeout(() => { if (page.picture) { drawLists(); findRunning(); } }, 120); };
  byId("query").onkeydown = event => { if (event.key === "Enter") openFound(); };
  byId("group-by").onchange = byId("size").onchange = draw;
  byId("waiting-by").onchange = () => page.picture && drawLists();
  byId("view").onchange = () => {
    const [, kind, name] = /^(\w+) (.*)$/.exec(byId("view").value) || ["", "", ""];
    chooseView(kind, name);
  };
  new ResizeObserver(() => page.picture && draw()).observe(map.box);
  const mark = () => { for (const table of Object.values(tables)) table.draw(); };
  addEventListener("hashchange", () => { showDetail(page.picture, isLive); mark(); });
  addEventListener("closed", mark);
  addEventListener("keydown", event => {
    if (event.key === "Escape" && detail.open) closeDetail();
    else if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) { event.preventDefault(); byId("query").focus(); }
  });
  addEventListener("popstate", () => { readView(); if (page.picture) draw(); lookAtView(); });
  addEventListener("beforeprint", () => setPrinting(true));
  addEventListener("afterprint", () => setPrinting(false));
  document.addEventListener("visibilitychange", wake);
  if (!isLive) show(readPicture(JSON.parse(embedded.textContent)));
  sayStatus();
  wake();
}

start();
