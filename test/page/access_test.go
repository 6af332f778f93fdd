// SPDX-License-Identifier: Apache-2.0

package page

import "testing"

// The rules of WCAG 2.2 that a program can check: names, roles, order of heads, contrast, what a keyboard reaches.
const rules = `(() => {
  const faults = [];
  const visible = one => one.checkVisibility({opacityProperty: true, visibilityProperty: true}) && one.getClientRects().length > 0;
  const all = selector => [...document.querySelectorAll(selector)].filter(visible);
  const of = one => one.tagName.toLowerCase() + (one.id ? "#" + one.id : "") + " '" + one.innerText?.slice(0, 40) + "'";
  const nameOf = one => one.getAttribute("aria-label") || (one.getAttribute("aria-labelledby") || "").split(" ").map(id => document.getElementById(id)?.innerText || "").join("") ||
    [...(one.labels || [])].map(label => label.innerText).join("") || one.innerText;
  for (const one of all("a[href], button, input, select, canvas[tabindex], [role=region], section, aside, summary"))
    if (!nameOf(one)?.trim()) faults.push("no name: " + of(one));
  for (const tag of ["header", "main", "h1"]) if (document.querySelectorAll(tag).length !== 1) faults.push("want one " + tag);
  if (!document.documentElement.lang) faults.push("no language");
  const ids = [...document.querySelectorAll("[id]")].map(one => one.id);
  if (new Set(ids).size !== ids.length) faults.push("an id is there twice: " + ids.filter((id, i) => ids.indexOf(id) !== i));
  for (const one of document.querySelectorAll("[aria-labelledby], [aria-describedby]"))
    for (const id of (one.getAttribute("aria-labelledby") || one.getAttribute("aria-describedby")).split(" "))
      if (!document.getElementById(id)) faults.push("refers to nothing: " + id);
  let level = 0;
  for (const one of all("h1, h2, h3, h4")) {
    const now = Number(one.tagName[1]);
    if (now > level + 1) faults.push("a head skips a level: " + of(one));
    level = now;
  }
  for (const table of all("table")) for (const head of table.querySelectorAll("th")) if (!head.scope) faults.push("a head without scope: " + of(head));
  for (const one of all("[onclick], tr, td, li")) if (one.onclick && !one.matches("a, button, canvas, summary")) faults.push("for the mouse alone: " + of(one));
  for (const one of all("a[href], button, input, select")) if (one.tabIndex < 0) faults.push("no keyboard gets there: " + of(one));
  for (const one of all(".scroll")) if (one.scrollWidth > one.clientWidth && one.tabIndex < 0) faults.push("scrolls for the mouse alone: " + of(one));

  const parse = text => (text.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const ratio = (a, b) => (Math.max(light(a), light(b)) + .05) / (Math.min(light(a), light(b)) + .05);
  const behind = one => {
    for (; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  for (const one of all("body *")) {
    if (![...one.childNodes].some(child => child.nodeType === 3 && child.textContent.trim())) continue;
    if (one.closest(".unseen, noscript, script, style")) continue;
    const found = ratio(parse(getComputedStyle(one).color), behind(one));
    if (found < 4.5) faults.push("contrast " + found.toFixed(2) + ": " + of(one));
  }
  // What is no text, and means something, against what it is drawn on.
  for (const name of ["held", "gang", "plan", "sick", "mig", "idle-edge"]) {
    const probe = document.createElement("i");
    probe.style.color = "var(--" + name + ")";
    document.body.append(probe);
    const found = ratio(parse(getComputedStyle(probe).color), behind(document.body));
    probe.remove();
    if (found < 3) faults.push("contrast of a cell " + found.toFixed(2) + ": " + name);
  }
  return [...new Set(faults)];
})()`

func TestTheRulesOfAccess(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	for _, scheme := range []string{"light", "dark"} {
		for _, hash := range []string{"", "#node=mig-0", "#pod=team-a/big-3"} {
			must(t, w.Prefer(scheme))
			must(t, w.Go("about:blank"))
			w.open(t, hash)
			if hash != "" {
				w.await(t, `byId("detail").querySelector("table")`)
			}
			for _, fault := range eval[[]string](t, w.Tab, rules) {
				t.Errorf("%s %s: %s", scheme, hash, fault)
			}
		}
	}
}
