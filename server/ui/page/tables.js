// Tables that are sorted by their heads and keep their rows: a refresh changes the cells that are another, so that what
// has the focus keeps it.
"use strict";

// columns: [{label, cell(row) -> text, element or list, sort(row) -> value, kind: "n" | "one" | "words" | "name", spare}]; the first
// is the head of its row. A row with `children`, rows too, is a group: its first column has the button that shows them.
// options: {key(row), most, empty, cards, isOpen(row)}
class Table {
  constructor(box, columns, options) {
    Object.assign(this, {box, columns, options, rows: [], order: null, down: false, shown: options.most || 50, kept: new Map(), unfolded: new Set()});
    this.heads = columns.map((column, i) => this.headOf(column, i));
    this.body = make("tbody");
    this.scroll = make("div", {class: options.cards ? "scroll cards" : "scroll", role: "region", "aria-label": options.name, tabindex: "0"},
      make("table", {}, make("thead", {}, make("tr", {}, this.heads)), this.body));
    this.none = make("p", {class: "none"});
    this.more = make("button", {type: "button", class: "quiet more", onclick: () => { this.shown *= 4; this.draw(); }});
    box.replaceChildren(this.none, this.scroll, this.more);
  }

  headOf(column, i) {
    if (!column.sort) return make("th", {scope: "col", class: column.kind}, column.label);
    const button = make("button", {type: "button", class: "sorter", onclick: () => this.sortBy(i)}, column.label);
    return make("th", {scope: "col", class: column.kind, "aria-sort": "none"}, button);
  }

  sortBy(i) {
    if (this.order === i) this.down = !this.down;
    else [this.order, this.down] = [i, this.columns[i].kind === "n"];
    this.heads.forEach((head, at) => {
      if (this.columns[at].sort) head.setAttribute("aria-sort", at !== i ? "none" : this.down ? "descending" : "ascending");
    });
    this.draw();
  }

  show(rows, empty) {
    this.rows = rows;
    setText(this.none, empty || this.options.empty);
    this.draw();
  }

  sorted(rows) {
    if (this.order === null) return rows;
    const value = this.columns[this.order].sort;
    const sign = this.down ? -1 : 1;
    return [...rows].sort((a, b) => {
      const x = value(a), y = value(b);
      return sign * (typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x - y);
    });
  }

  // The rows as they stand below each other: those of a group behind it, where it is unfolded.
  below(rows, depth = 0) {
    return this.sorted(rows).flatMap(row => {
      const inner = row.children && this.unfolded.has(this.options.key(row)) ? this.below(row.children, depth + 1) : [];
      return [{row, depth}, ...inner];
    });
  }

  fold(key) {
    if (!this.unfolded.delete(key)) this.unfolded.add(key);
    this.draw();
    this.kept.get(key)?.cells[0].querySelector("button").focus({preventScroll: true});
  }

  // The content of a group's first column.
  folder(row, text) {
    const key = this.options.key(row);
    return make("button", {type: "button", class: "folder", "aria-expanded": String(this.unfolded.has(key)), onclick: () => this.fold(key)}, text);
  }

  draw() {
    this.none.hidden = this.rows.length > 0;
    this.scroll.hidden = this.rows.length === 0;
    const all = this.below(this.rows), lines = all.slice(0, this.shown), rows = lines.map(line => line.row);
    this.more.hidden = lines.length === all.length;
    setText(this.more, `Show more of ${all.length.toLocaleString("en")}`);
    this.hideSpare(rows);
    const kept = new Map();
    const elements = lines.map(({row, depth}) => {
      const key = this.options.key(row);
      const line = this.kept.get(key) || this.lineOf();
      kept.set(key, line);
      this.fill(line, row);
      line.row.dataset.depth = depth;
      return line.row;
    });
    this.kept = kept;
    const same = elements.length === this.body.children.length && elements.every((row, i) => row === this.body.children[i]);
    if (same) return;
    const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
    this.body.replaceChildren(...elements);
    if (focused?.isConnected) focused.focus({preventScroll: true});
  }

  // Columns that have nothing to say in any row are left out.
  hideSpare(rows) {
    const spare = this.columns.map(column => Boolean(column.spare) && rows.every(row => column.cell(row) === ""));
    const look = spare.join();
    if (look === this.spareLook) return;
    this.spareLook = look;
    this.spare = spare;
    this.heads.forEach((head, i) => { head.hidden = spare[i]; });
    this.kept = new Map();
  }

  lineOf() {
    const cells = this.columns.map((column, i) => make(i === 0 ? "th" : "td", {
      class: column.kind, scope: i === 0 ? "row" : null, "data-label": i > 0 ? column.label : null, hidden: this.spare?.[i],
    }));
    return {row: make("tr", {}, cells), cells, looks: []};
  }

  fill(line, row) {
    line.row.classList.toggle("open", Boolean(this.options.isOpen?.(row)));
    this.columns.forEach((column, i) => {
      const content = column.cell(row);
      // What has been written is compared in words; elements say the same when their texts and links do.
      const look = [content].flat().map(one => one instanceof Element ? one.outerHTML : String(one ?? "")).join("\n");
      if (line.looks[i] === look) return;
      line.looks[i] = look;
      line.cells[i].classList.toggle("blank", look === "");
      line.cells[i].replaceChildren(...[content].flat().filter(one => one !== undefined && one !== null && one !== ""));
    });
  }
}

// A bar and the figure beside it.
function meter(part, whole, text) {
  const bar = make("i");
  bar.style.width = (whole > 0 ? Math.min(100, 100 * part / whole) : 0) + "%";
  return [make("span", {class: "meter", "aria-hidden": "true"}, bar), text];
}

// A page outlives the server that it came from: an older one, after a way back, says nothing of drivers.
const driversOf = row => row.drivers || [];

const modelColumns = [
  {label: "Model", kind: "one", cell: row => row.model || "unknown", sort: row => row.model},
  {label: "Nodes", kind: "n", cell: row => row.nodes.toLocaleString("en"), sort: row => row.nodes},
  {label: "GPUs", kind: "n", sort: row => row.gpus,
    cell: row => row.gpus || !row.shared_gpus ? row.gpus.toLocaleString("en") : row.shared_gpus.toLocaleString("en") + " shared"},
  {label: "Allocated", kind: "one", sort: row => row.gpus ? row.allocated_milli / row.gpus : 0,
    cell: row => row.gpus ? meter(row.allocated_milli / 1000, row.gpus, short(row.allocated_milli / 1000) + " (" + percent(row.allocated_milli / 1000, row.gpus) + ")") : ""},
  {label: "Idle", kind: "n", cell: row => row.gpus ? row.idle.toLocaleString("en") : "", sort: row => row.idle},
  {label: "Largest hole", kind: "one", sort: row => row.largest_hole,
    cell: row => row.hole_node ? [row.largest_hole + " on ", linkTo("node", row.hole_node)] : row.gpus ? "none" : ""},
  ...["1", "2", "4", "8"].map(size => ({
    label: "Pods of " + size, kind: "n", sort: row => row.pods_that_fit[size] || 0,
    cell: row => row.gpus || row.places ? (row.pods_that_fit[size] || 0).toLocaleString("en") : "",
  })),
  {label: "Unhealthy", kind: "n", spare: true, cell: row => row.out_of_order ? String(row.out_of_order) : "", sort: row => row.out_of_order},
  {label: "Closed", kind: "n", spare: true, cell: row => row.closed ? String(row.closed) : "", sort: row => row.closed || 0},
  {label: "Partitioned", kind: "n", spare: true, cell: row => row.mig_gpus ? String(row.mig_gpus) : "", sort: row => row.mig_gpus},
  {label: "Driver", spare: true, sort: row => driversOf(row).length ? driversOf(row)[0].driver : "",
    cell: row => driversOf(row).map((found, i, all) => all.length > 1 ? found.driver + " on " + found.nodes : found.driver).join(", ")},
  {label: "Free GPU replicas", kind: "n one", spare: true, cell: row => row.places ? row.free_places + " of " + row.places : "", sort: row => row.free_places},
];

const nodeColumns = [
  {label: "Node", kind: "name", cell: row => linkTo("node", row.name), sort: row => row.name},
  {label: "Model", kind: "name", cell: row => row.model, sort: row => row.model},
  {label: "Location", kind: "name", spare: true, cell: row => row.place, sort: row => row.place},
  {label: "GPUs", kind: "n", cell: row => String(row.counts.gpus + row.counts.mig), sort: row => row.counts.gpus + row.counts.mig},
  {label: "Idle", kind: "n", cell: row => row.counts.gpus ? String(row.counts.idle) : "", sort: row => row.counts.idle},
  {label: "Use", kind: "words", cell: row => nodeText(row), sort: row => row.counts.held + row.counts.gang + row.counts.part},
  {label: "State", kind: "one", spare: true, cell: row => row.state ? make("span", {class: "tag"}, row.state) : "", sort: row => row.state},
];

// of: "namespace" or "class". Of a namespace's name the link shows its part of the page (views.js).
const ownerColumns = of => [
  {label: of === "class" ? "Class" : "Namespace", kind: "name", cell: row => linkToView(of, row.name), sort: row => row.name},
  {label: "GPUs held", kind: "one", sort: row => row.gpus, cell: row => meter(row.gpus, row.all, `${short(row.gpus)} (${percent(row.gpus, row.all)})`)},
  {label: "MIG devices", kind: "n", spare: true, cell: row => row.mig_devices ? row.mig_devices.toLocaleString("en") : "", sort: row => row.mig_devices},
  {label: "Pods", kind: "n", cell: row => row.pods.toLocaleString("en"), sort: row => row.pods},
  {label: "Nodes", kind: "n", cell: row => row.nodes.toLocaleString("en"), sort: row => row.nodes},
  {label: "Waiting pods", kind: "n", cell: row => row.waiting.toLocaleString("en"), sort: row => row.waiting},
  {label: "GPUs they request", kind: "n", cell: row => short(row.asked), sort: row => row.asked},
];

const groupColumns = [
  {label: "Gang", kind: "name", cell: row => linkTo("group", row.gang), sort: row => row.gang},
  {label: "State", kind: "one", cell: row => row.state, sort: row => row.state},
  {label: "Needs", kind: "n", cell: row => String(row.minimum), sort: row => row.minimum},
  {label: "Placed", kind: "n", cell: row => String(row.placed), sort: row => row.placed},
  {label: "Planned", kind: "n", cell: row => String(row.planned), sort: row => row.planned},
  {label: "Waiting", kind: "n", cell: row => String(row.waiting), sort: row => row.waiting},
  {label: "Since", kind: "n one", cell: row => since(row.since), sort: row => -row.since},
  {label: "Why", kind: "words", cell: row => row.why || ""},
];

const boundColumns = [
  {label: "Pod", kind: "name", cell: row => linkTo("pod", row.pod), sort: row => row.pod},
  {label: "Node", kind: "name", cell: row => linkTo("node", row.node), sort: row => row.node},
  {label: "Devices", kind: "words", cell: row => row.devices},
  {label: "Ago", kind: "n one", cell: row => since(row.since), sort: row => -row.since},
  {label: "Fitting nodes", kind: "one", sort: row => row.fitting || 0,
    cell: row => row.candidates ? `${row.fitting.toLocaleString("en")} of ${row.candidates.toLocaleString("en")}` : ""},
];

const kMoveSteps = {next: "waits for its turn", ends: "evicted; its successor has no place yet", moved: "moved"};
const roomColumns = [
  {label: "Move", kind: "n", cell: row => String(row.number), sort: row => row.number},
  {label: "Pod", kind: "name", cell: row => linkTo("pod", row.pod), sort: row => row.pod},
  {label: "From", kind: "name", cell: row => linkTo("node", row.from), sort: row => row.from},
  {label: "To", kind: "name", cell: row => linkTo("node", row.to), sort: row => row.to},
  {label: "State", kind: "words", cell: row => kMoveSteps[row.step] || row.step, sort: row => row.step},
];

const recutColumns = [
  {label: "Node", kind: "name", cell: row => linkTo("node", row.node), sort: row => row.node},
  {label: "Layout", kind: "one", cell: row => row.config, sort: row => row.config},
  {label: "Waiting pods that would fit", kind: "n", cell: row => String(row.fits), sort: row => row.fits},
];
