// The part of the page that is one namespace's or one workload class's: its pods, and the nodes on which they hold GPUs.
// The address has it, so that it can be shared: "?namespace=NAME", "?class=NAME".
"use strict";

const view = {kind: "", name: "", told: null, seen: 0};

const kViews = {
  namespace: {title: "Namespace", path: "debug/namespaces/", list: "namespaces", has: row => (row.pod || row.gang).startsWith(view.name + "/")},
  class: {title: "Workload class", path: "debug/classes/", list: "classes", has: row => row.class === view.name},
};

const viewAddress = (kind, name) => kind ? `?${kind}=${encodeURIComponent(name)}` : location.pathname;

function readView() {
  const query = new URLSearchParams(location.search);
  const kind = Object.keys(kViews).find(one => query.get(one)) || "";
  Object.assign(view, {kind, name: kind ? query.get(kind) : "", told: null, seen: 0});
}

function chooseView(kind, name) {
  history.pushState(null, "", viewAddress(kind, name) + location.hash);
  readView();
  if (page.picture) draw();
  lookAtView();
}

function linkToView(kind, name) {
  if (!isLive) return name;
  const choose = event => { event.preventDefault(); chooseView(kind, name); };
  return make("a", {href: viewAddress(kind, name), onclick: choose}, name);
}

const inView = rows => view.kind ? rows.filter(kViews[view.kind].has) : rows;

// Names of its nodes; null: of all nodes, or not yet known.
const viewNodes = () => view.told ? new Set(view.told.nodes.map(one => one.node)) : null;

// Asked for when it is chosen, and then as often as the panel.
async function lookAtView() {
  const {kind, name} = view;
  if (!kind || !isLive || Date.now() - view.seen < 10000) return;
  view.seen = Date.now();
  try {
    const answer = await fetch(kViews[kind].path + encodeURIComponent(name), {cache: "no-store"});
    if (!answer.ok) return;
    const told = await answer.json();
    if (view.kind !== kind || view.name !== name) return;  // another one was chosen meanwhile
    view.told = told;
    drawSums(page.picture);
    drawLists();
  } catch { /* the page says that the server does not answer */ }
}

function drawView(waiting) {
  const picture = page.picture, select = byId("view");
  const options = Object.entries(kViews).map(([kind, {title, list}]) => {
    const names = (picture[list] || []).map(row => row.name);
    if (view.kind === kind && !names.includes(view.name)) names.push(view.name);
    return names.length === 0 ? "" : make("optgroup", {label: title}, names.map(name => make("option", {value: kind + " " + name}, name)));
  });
  const wanted = make("select", {}, make("option", {value: ""}, "whole cluster"), options);
  if (select.textContent !== wanted.textContent) select.replaceChildren(...wanted.childNodes);
  select.value = view.kind ? view.kind + " " + view.name : "";
  byId("view-box").hidden = !isLive || select.options.length === 1;
  const said = byId("view-sum");
  said.hidden = !view.kind;
  if (!view.kind) return;
  const {told} = view, asked = waiting.reduce((gpus, row) => gpus + (row.gpus || 0), 0);
  const holds = told ? `${gpusText(told.gpus)}${told.mig_devices ? " and " + count(told.mig_devices, "MIG device") : ""} held by ${count(told.pods, "pod")} on ${count(told.nodes.length, "node")}; ` : "";
  setText(said, `${kViews[view.kind].title} ${view.name}: ${holds}${count(waiting.length, "pod")} ${waiting.length === 1 ? "waits" : "wait"}${asked ? ` for ${gpusText(asked)}` : ""}.`);
}

// The rows of the tables by namespace and by class: what is held, and what waits.
function ownerRows(list, ownerOf) {
  const {gpus} = sumUp(page.picture.nodes), waits = new Map();
  const shared = page.picture.nodes.reduce((sum, node) => sum + (node.shared?.gpus || 0), 0);
  for (const row of page.picture.waiting) {
    const name = ownerOf(row);
    if (!name || row.gated) continue;
    const sum = waits.get(name) || {waiting: 0, asked: 0};
    waits.set(name, {waiting: sum.waiting + 1, asked: sum.asked + (row.gpus || 0)});
  }
  const nothing = {waiting: 0, asked: 0}, known = new Set(list.map(row => row.name));
  const rows = list.map(row => ({...row, ...(waits.get(row.name) || nothing), all: gpus + shared}));
  for (const [name, sum] of waits) if (!known.has(name)) rows.push({name, gpus: 0, mig_devices: 0, pods: 0, nodes: 0, ...sum, all: gpus + shared});
  return rows;
}
