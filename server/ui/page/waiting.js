// The pods that wait, those of one cause and of one gang in one row.
"use strict";

const kManyWait = 25;  // from here on they are grouped

// The numbers of pods that wait for the same thing differ: "fits none of 50 nodes: ...".
const causeOf = row => row.gated ? "gated" : (row.why || "").replace(/\d+/g, "#");

// What all rows have in common; else what `other` says.
function common(rows, read, other) {
  const first = read(rows[0]);
  return rows.every(row => read(row) === first) ? first : other;
}

// A row for several pods. children: these pods, or groups of them.
function groupOf(key, pods, children) {
  const gangs = new Set(pods.map(row => row.gang).filter(Boolean));
  const ages = pods.filter(row => row.since).map(row => row.since);
  const [longest] = pods;  // they come with the longest wait first
  return {
    key, children, pods: pods.length,
    namespaces: [...new Set(pods.map(row => row.pod.split("/")[0]))],
    gpus: pods.reduce((sum, row) => sum + (row.gpus || 0), 0),
    each: common(pods, row => row.asks, ""),
    since: ages.length > 0 ? Math.min(...ages) : null,
    priority: common(pods, row => row.priority || 0, 0),
    gang: common(pods, row => row.gang || "", ""), gangs: gangs.size,
    gated: longest.gated, why: common(pods, row => row.why, longest.why ? "the oldest: " + longest.why : ""), fits: common(pods, row => row.fits || "", ""),
  };
}

function groupWaiting(rows) {
  return gather(rows, causeOf).map(([cause, pods]) => {
    const inner = gather(pods, row => row.gang ? "gang " + row.gang : "pod " + row.pod).map(([gang, members]) =>
      members.length === 1 ? members[0] : groupOf("cause " + cause + " " + gang, members, members));
    return inner.length === 1 ? inner[0] : groupOf("cause " + cause, pods, inner);
  });
}

// Rows of the table, grouped as the page is set: "auto", "cause" or "none".
function waitingRows(rows, by) {
  return by === "cause" || (by === "auto" && rows.length > kManyWait) ? groupWaiting(rows) : rows;
}

function groupName(row) {
  const some = row.namespaces.slice(0, 3).join(", ");
  return [tables.waiting.folder(row, count(row.pods, "pod")), make("span", {class: "soft"}, ` of ${some}${row.namespaces.length > 3 ? " and others" : ""}`)];
}

function asksText(row) {
  if (!row.children) return row.asks + (row.models ? " of " + row.models.join(" or ") : "");
  const sum = row.gpus > 0 ? short(row.gpus) + " GPUs in all" : "";
  return row.each ? `${row.each} each${sum ? ", " + sum : ""}` : sum;
}

const waitingColumns = [
  {label: "Pod", kind: "name", cell: row => row.children ? groupName(row) : linkTo("pod", row.pod), sort: row => row.pod || ""},
  {label: "Requests", kind: "one", cell: asksText, sort: row => row.gpus || 0},
  {label: "Age", kind: "n one", cell: row => row.since ? (row.children ? "up to " : "") + since(row.since) : "", sort: row => row.since ? -row.since : 0},
  {label: "Priority", kind: "n", spare: true, cell: row => row.priority ? String(row.priority) : "", sort: row => row.priority || 0},
  {label: "Gang", kind: "name", spare: true, sort: row => row.gang || "",
    cell: row => row.gang ? linkTo("group", row.gang) : row.gangs ? count(row.gangs, "gang") : ""},
  {label: "Why", kind: "words", cell: row => row.why || (row.gated ? "gated" : "open it to see why"), sort: row => row.why || ""},
  {label: "Fits if", kind: "words", spare: true, cell: row => row.fits || ""},
];
