// The panel beside the page: one node, pod or group, asked for when it is opened.
"use strict";

const detail = {open: null, from: null, fromMap: null, seen: 0};

const kTitles = {node: "Node", pod: "Pod", group: "Gang"};
const pathOf = ({key, value}) => "debug/" + {node: "nodes/", pod: "pods/", group: "gangs/"}[key] + value.split("/").map(encodeURIComponent).join("/");

function rowsOf(pairs) {
  return make("dl", {}, pairs.filter(([, value]) => value !== "" && value !== undefined && value !== null)
    .map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function smallTable(name, heads, rows, kind) {
  if (rows.length === 0) return "";
  return make("div", {class: "scroll", role: "region", "aria-label": name, tabindex: "0"}, make("table", {class: kind},
    make("thead", {}, make("tr", {}, heads.map(head => make("th", {scope: "col"}, head)))),
    make("tbody", {}, rows.map(row => make("tr", {}, row.map((cell, i) => make(i === 0 ? "th" : "td", {scope: i === 0 ? "row" : null}, cell)))))));
}

const gib = bytes => short(bytes / 2 ** 30) + " GiB";

function devicesText(devices) {
  const parts = (devices.gpus || []).map(gpu => "GPU " + (gpu.index ?? gpu.uuid) + (gpu.milli < 1000 ? ` (${gpu.milli / 10} %)` : ""));
  for (const mig of devices.mig || []) parts.push(typeof mig === "string" ? mig : mig.profile + (mig.start === undefined ? "" : " at " + mig.start) + (mig.gpu === undefined ? "" : " of GPU " + mig.gpu));
  if (devices.places) parts.push(count(devices.places, "GPU replica"));
  return parts.join(", ");
}

function holderLink(holder) {
  return holder.startsWith("claim ") ? holder : linkTo("pod", holder);
}

// What the picture alone says of a node: at once, and all that there is without a server.
function nodeFromPicture(node) {
  const gpus = gpusOf(node.cells).map((gpu, i) => gpuText(gpu, i).split(": "));
  return [
    make("p", {class: "say"}, nodeText(node)),
    rowsOf([["Model", node.model], ["Location", node.place], ["State", node.state]]),
    make("h3", {}, "GPUs"), smallTable("GPUs", ["GPU", "Use"], gpus),
  ];
}

function nodePanel(told, node) {
  const spaces = new Map();
  for (const pod of told.pods) {
    const space = pod.pod.split("/")[0];
    spaces.set(space, (spaces.get(space) || 0) + 1);
  }
  const gpus = told.gpus.map(gpu => [
    "GPU " + gpu.index,
    !gpu.open ? "unhealthy" : gpu.free_milli === 1000 ? "idle" : gpu.free_milli <= 0 ? "held" : `${gpu.free_milli / 10} % free`,
    gpu.held_by.flatMap((holder, i) => i === 0 ? [holderLink(holder)] : [", ", holderLink(holder)]),
  ]);
  const pods = told.pods.map(pod => [linkTo("pod", pod.pod), pod.gpus_unknown ? "devices unknown" : devicesText(pod), pod.state === "bound" ? "" : pod.state]);
  return [
    node ? make("p", {class: "say"}, nodeText(node)) : "",
    rowsOf([
      ["Model", told.model], ["Driver", told.driver], ["CUDA, at most", told.cuda], ["Location", node?.place], ["State", told.ready ? node?.state : "not ready"],
      ["CPU free", `${short(told.free_cpu_milli / 1000)} of ${short(told.cpu_milli / 1000)}`],
      ["Memory free", `${gib(told.free_memory_bytes)} of ${gib(told.memory_bytes)}`],
      ["Ephemeral storage free", told.ephemeral_bytes === undefined ? "" : `${gib(told.free_ephemeral_bytes)} of ${gib(told.ephemeral_bytes)}`],
      ["Taints", told.taints.join(", ")],
      ["Notes", (told.notes || []).join("; ")],
      ["Kept", (told.kept_for || []).map(kept => kept.text).join("; ")],
      ["Free GPU replicas", told.places ? `${told.places.free} of ${told.places.count}` : ""],
      ["Namespaces", [...spaces].map(([space, pods]) => `${space} (${pods})`).join(", ")],
      ["MIG free", told.mig ? Object.entries(told.mig.free).map(([profile, free]) => `${free} ${profile}`).join(", ") || "none" : ""],
    ]),
    gpus.length > 0 ? make("h3", {}, "GPUs") : "", smallTable("GPUs", ["GPU", "Use", "Held by"], gpus),
    ...slicesOf(told), pods.length > 0 ? make("h3", {}, "Pods with GPUs") : "", smallTable("Pods", ["Pod", "Devices", ""], pods),
    linksOf(told),
  ];
}

function slicesOf(told) {
  if (!told.mig?.devices) return [];
  const texts = list => list.map(one => `${one.profile} at ${one.start}`).join(", ") || "none";
  return [make("h3", {}, "MIG devices, by their first memory slice"),
    smallTable("MIG devices", ["GPU", "Held", "Free"], told.mig.devices.map(gpu => ["GPU " + gpu.gpu, texts(gpu.taken), texts(gpu.free)]))];
}

function linksOf(told) {
  if (!told.links) return "";
  const {matrix, source} = told.links;
  const rows = matrix.map((row, i) => [String(i), ...row]);
  return make("details", {}, make("summary", {}, "Links between its GPUs"),
    smallTable("Links", ["", ...matrix.map((_, i) => String(i))], rows, "links"), make("p", {class: "soft"}, "from " + source));
}

function podPanel(told) {
  const placed = told.node !== undefined;
  const scorers = told.best[0]?.scores.map(score => score.scorer) || [];
  const best = told.best.map(one => [
    [one.place + ". ", linkTo("node", one.node)], ...one.scores.map(score => String(score.score)), one.node === told.node ? "its node" : "",
  ]);
  const nearest = told.nearest.map(near => make("li", {}, linkTo("node", near.node), ": " + near.lack,
    near.fits.length > 0 ? "; fits " + near.fits.map(way => way.text).join(", or ") : ""));
  return [
    make("p", {class: "say"}, told.sentence),
    told.scheduler_said ? make("p", {}, "kube-scheduler said: " + told.scheduler_said) : "",
    rowsOf([
      ["State", told.state], ["Node", placed ? linkTo("node", told.node) : ""], ["Devices", placed ? devicesText(told.devices) : ""],
      ["Requests", told.asks.text], ["CPU, memory", `${short(told.asks.cpu_milli / 1000)}, ${gib(told.asks.memory_bytes)}`],
      ["Ephemeral storage", told.asks.ephemeral_bytes ? gib(told.asks.ephemeral_bytes) : ""],
      ["Models", (told.asks.models || []).join(" or ")], ["Priority", String(told.priority)], ["Scheduler", told.scheduler],
      ["Gang", told.gang ? linkTo("group", told.gang.gang.replace(/^[^:/]*:/, "")) : ""],
      ["Age", !placed && told.age_seconds !== null ? age(told.age_seconds) : ""],
    ]),
    told.reasons.length > 0 && !placed ? make("h3", {}, "Nodes by the first reason to reject them") : "",
    placed ? "" : smallTable("Reasons", ["Reason", "Nodes"], told.reasons.map(one => [one.text, one.nodes.toLocaleString("en")])),
    nearest.length > 0 ? [make("h3", {}, told.gang ? "Nearest nodes, for this pod alone" : "Nearest nodes"), make("ul", {}, nearest)] : "",
    told.preemption ? [make("h3", {}, "Preemption"), make("p", {}, told.preemption.text)] : "",
    best.length > 0 ? make("h3", {}, placed ? "Why this node: scores as of now, without the pod" : "Best nodes, by score") : "",
    smallTable("Scores", ["Node", ...scorers, ""], best),
  ].flat();
}

function groupPanel(told) {
  return [
    make("p", {class: "say"}, told.sentence),
    rowsOf([["State", told.state], ["Needs", String(told.minimum)], ["Placed", String(told.placed)], ["Waiting", String(told.waiting)]]),
    make("h3", {}, "Members"),
    smallTable("Members", ["Pod", "State", "Node"], told.members.map(one => [linkTo("pod", one.pod), one.state, one.node ? linkTo("node", one.node) : ""])),
    told.waiting_member ? [make("h3", {}, "A member that waits"), make("p", {}, told.waiting_member.sentence)] : "",
  ].flat();
}

function fillPanel(children) {
  const {key, value} = detail.open;
  const close = make("button", {type: "button", class: "quiet", onclick: closeDetail}, "Close");
  const kept = byId("detail").scrollTop;
  const hadFocus = byId("detail").contains(document.activeElement) && document.activeElement !== byId("detail");
  byId("detail").replaceChildren(
    make("div", {class: "head"}, make("h2", {}, make("span", {class: "soft"}, kTitles[key] + " "), value), close), ...children.filter(Boolean));
  byId("detail").scrollTop = kept;
  if (hadFocus) close.focus({preventScroll: true});
}

// Shows what the address names, or closes the panel.
async function showDetail(picture, isLive) {
  const wanted = readAddress();
  const panel = byId("detail");
  const same = detail.open && wanted && detail.open.key === wanted.key && detail.open.value === wanted.value;
  detail.open = wanted;
  if (!wanted) {
    panel.hidden = true;
    return;
  }
  if (panel.hidden) {
    detail.from = document.activeElement;
    detail.fromMap = map.box.contains(detail.from) ? map.cursor.group.nodes[map.cursor.at].name : null;
  }
  panel.hidden = false;
  detail.seen = Date.now();
  const node = wanted.key === "node" ? picture?.byName.get(wanted.value) : null;
  if (!same) {
    panel.scrollTop = 0;
    fillPanel(node ? nodeFromPicture(node) : [make("p", {class: "soft"}, isLive ? "loading" : "This file has no more details.")]);
    panel.focus({preventScroll: true});
  }
  if (!isLive) return;
  try {
    const answer = await fetch(pathOf(wanted), {cache: "no-store"});
    const told = await answer.json();
    if (detail.open !== wanted) return;  // another one was opened meanwhile
    if (!answer.ok) return fillPanel([make("p", {class: "say"}, told.error)]);
    fillPanel(wanted.key === "node" ? nodePanel(told, page.picture?.byName.get(wanted.value)) : wanted.key === "pod" ? podPanel(told) : groupPanel(told));
  } catch (problem) {
    if (detail.open === wanted && !same) fillPanel([make("p", {class: "say"}, "no answer: " + problem.message)]);
  }
}

function closeDetail() {
  const back = detail.from;
  history.pushState(null, "", location.pathname + location.search);
  showDetail(null, false);
  dispatchEvent(new Event("closed"));
  if (detail.fromMap) goToNode(detail.fromMap, true);  // it may have been drawn anew meanwhile
  else if (back?.isConnected) back.focus({preventScroll: true});
}
