// Building elements, and saying numbers. Text enters the page as text alone: names of pods are anybody's.
"use strict";

const byId = id => document.getElementById(id);

// make("td", {class: "n", onclick: f}, "text", element, ...)
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== "") element.append(child);
  }
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const count = (number, what) => number.toLocaleString("en") + " " + what + (number === 1 ? "" : "s");

// 12.5 for 12.53; 12 for 12.0.
const short = number => (Math.round(number * 10) / 10).toLocaleString("en");

const gpusText = number => short(number) + (number === 1 ? " GPU" : " GPUs");

const percent = (part, whole) => whole > 0 ? Math.round(100 * part / whole) + " %" : "0 %";

// "42 s", "7 min", "3 h", "5 d": as old as that, rounded down.
function age(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return s + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  if (s < 172800) return Math.floor(s / 3600) + " h";
  return Math.floor(s / 86400) + " d";
}

const since = at => age(Date.now() / 1000 - at);

// The part of the address after '#': {node: "n1"} or {pod: "team-a/train-3"} or {group: ...}.
function readAddress() {
  const [, key, value] = /^#(node|pod|group)=(.+)$/.exec(location.hash) || [];
  if (!key) return null;
  try {
    return {key, value: decodeURIComponent(value)};
  } catch {
    return null;  // a stray %
  }
}

const addressOf = (key, value) => "#" + key + "=" + encodeURIComponent(value).replaceAll("%2F", "/");

const linkTo = (key, value, text) => make("a", {href: addressOf(key, value)}, text || value);
