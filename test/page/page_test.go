// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// kept is where pictures of the page stay, to look at.
func kept(t *testing.T, name string) string {
	folder := os.Getenv("BERTH_PICTURES")
	if folder == "" {
		folder = t.TempDir()
	}
	must(t, os.MkdirAll(folder, 0o755))
	return filepath.Join(folder, name)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eval[T any](t *testing.T, tab *Tab, expression string) T {
	t.Helper()
	value, err := Eval[T](tab, expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

const alone = "leaderElection: {enabled: false}\n"

// world is a Berth that watches the cluster, and a tab. At the end the console must be empty.
type world struct {
	*Tab
	api   *APIServer
	berth *Berth
	// What is expected on the console: parts of texts.
	expected []string
}

func newWorld(t *testing.T, cluster Cluster, config string) *world {
	t.Helper()
	api := NewAPIServer(cluster)
	t.Cleanup(api.Stop)
	berth, err := StartBerth(t.TempDir(), api.URL, config)
	must(t, err)
	t.Cleanup(berth.Stop)
	tab, err := OpenTab(1440, 900)
	must(t, err)
	w := &world{Tab: tab, api: api, berth: berth}
	t.Cleanup(func() {
		tab.Close()
		for _, fault := range tab.Faults() {
			known := false
			for _, text := range w.expected {
				known = known || strings.Contains(fault, text)
			}
			if !known {
				t.Errorf("on the console: %s", fault)
			}
		}
	})
	return w
}

// open waits until the page shows nodes, and why all pods wait.
func (w *world) open(t *testing.T, hash string) {
	t.Helper()
	must(t, w.Go(w.berth.URL+"/"+hash))
	w.await(t, `document.querySelector("#nodes-table tbody tr") && !document.querySelector("#waiting-table").innerText.includes("open it to see why")`)
}

func (w *world) await(t *testing.T, expression string) {
	t.Helper()
	must(t, w.Await(expression))
}

func (w *world) sees(t *testing.T, selector string, texts ...string) {
	t.Helper()
	seen := w.Text(selector)
	for _, text := range texts {
		if !strings.Contains(seen, text) {
			t.Errorf("%s: want %q in %q", selector, text, seen)
		}
	}
}

func TestThePageShowsEverythingThatThereIs(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "")
	w.sees(t, "#waiting-table", "team-a/too-big", "64 GPUs", "26 h", "on l4-2 with 16 GPUs instead of 64",
		"its gang is gathering: 3 of 6 pods exist", "team-b/sweep", "scheduling gates",
		`annotation berth.dev/link: want one of required, preferred, none, got "sideways"`, "when team-b/train-01-2 ends")
	w.sees(t, "#sums", "11", "idle and usable", "unhealthy")
	w.sees(t, "#models-table", "NVIDIA-H100-80GB-HBM3", "34 of 48")
	w.sees(t, "#map", "NVIDIA-H100-80GB-HBM3 · zone eu-1a / leaf leaf-1", "16 partitioned GPUs")
	w.sees(t, "#groups-table", "team-b/sweep", "gathering")
	if rows := eval[int](t, w.Tab, `page.picture.nodes.length`); rows != 43 {
		t.Errorf("want 43 nodes with GPUs, got %d", rows)
	}
	// Eight wide: what is drawn of a node is what the picture says of its GPUs.
	drawn := eval[string](t, w.Tab, `[...map.groups.flatMap(group => group.drawn)].filter(Boolean).length + ""`)
	if drawn == "0" {
		t.Error("nothing is drawn")
	}
	w.await(t, `byId("status").textContent === "live"`)
}

// Nobody is moved in this cluster: the page is given a plan as /debug/live tells it.
func TestTheMovesThatMakeRoomAreShown(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "")
	if !eval[bool](t, w.Tab, `byId("room-section").hidden`) {
		t.Error("there is no plan, and the page shows one")
	}
	moves := `[{pod: "team-a/web", from: "l4-1", to: "l4-2", step: "moved"}, {pod: "team-a/<b>", from: "l4-3", to: "l4-2", step: "ends"},
		{pod: "team-a/third", from: "l4-3", to: "l4-4", step: "next"}]`
	give := func(more string) {
		eval[bool](t, w.Tab, `(show({...page.picture, room: {for: "ml/train", gang: true, since: Date.now() / 1000 - 90, moves: `+moves+more+`}}), true)`)
	}
	give("")
	w.sees(t, "#room-table", "team-a/web", "moved", "team-a/<b>", "its successor has no place yet", "waits for its turn")
	w.sees(t, "#room-sum", "for gang ml/train, begun 9")
	give(`, ended: "default/b is gone (1 of 3 moves made)", done: false`)
	w.sees(t, "#room-sum", "for gang ml/train: given up, default/b is gone (1 of 3 moves made)")
}

func TestNamesArePlainText(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "")
	w.sees(t, "#waiting-table", EvilName)
	w.expected = []string{"404"} // it is no name of a pod
	must(t, w.Go(w.berth.URL+"/#pod=team-a/"+"%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D'run'%22%3E"))
	w.await(t, `byId("detail").innerText.includes("<img src=x")`)
	if eval[int](t, w.Tab, `document.querySelectorAll("img").length`) != 0 {
		t.Error("a name became an element")
	}
	if title := eval[string](t, w.Tab, `document.title`); title != "Berth" {
		t.Errorf("a name was run: %q", title)
	}
}

func TestSearchNarrowsEverythingDown(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "")
	must(t, w.Press("/"))
	w.await(t, `document.activeElement === byId("query")`)
	eval[any](t, w.Tab, `(byId("query").value = "", 0)`) // the driver types the key all the same
	must(t, w.Press("leaf-2 h100"))
	w.await(t, `byId("nodes-sum").textContent === "6 of 43 nodes"`)
	w.sees(t, "#waiting-table", "No waiting pod matches.")
	w.await(t, `map.matches.size === 6`)
	eval[any](t, w.Tab, `(byId("query").value = "", byId("query").oninput(), 0)`)
	w.await(t, `byId("found").hidden && map.matches === null`)
	must(t, w.Press("h100-11\r"))
	w.await(t, `location.hash === "#node=h100-11"`)
	eval[any](t, w.Tab, `(byId("query").value = "", byId("query").focus(), 0)`)
	must(t, w.Press("team-b/train-01-2\r"))
	w.await(t, `location.hash === "#pod=team-b/train-01-2"`)
	w.await(t, `byId("detail").innerText.includes("is on h100-01 with GPU 2")`)
}

func TestSearchFindsPodsThatRunAndNamespaces(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "")
	search := func(text string) {
		eval[any](t, w.Tab, fmt.Sprintf(`(byId("query").value = %q, byId("query").oninput(), 0)`, text))
	}
	search("train-01")
	w.await(t, `/\d+ pods? with a node found/.test(byId("found").innerText) && map.matches?.has("h100-01")`)
	w.await(t, `[...document.querySelectorAll("#found a")].some(one => one.textContent === "team-b/train-01-2" && one.hash === "#pod=team-b/train-01-2")`)
	w.sees(t, "#found", "h100-01")
	search("lab/notebook")
	w.await(t, `byId("found").innerText.includes("more") && document.querySelectorAll("#found a").length === 16`)
	search("team-b")
	w.await(t, `byId("found").innerText.includes("1 namespace")`)
	search("nobody has this")
	w.await(t, `byId("found").innerText.includes("Nothing found")`)
}

func TestSmallGroupsStandSideBySide(t *testing.T) {
	var c Cluster
	for i, model := range []string{"NVIDIA-L4", "NVIDIA-L40S", "NVIDIA-A10", "Tesla-T4"} {
		c.node(fmt.Sprintf("n%d", i), model, Object{"nvidia.com/gpu": "4"}, nil)
	}
	w := newWorld(t, c, alone)
	w.open(t, "")
	w.await(t, `map.groups.length === 4`)
	if tops := eval[int](t, w.Tab, `new Set(map.groups.map(group => group.box.getBoundingClientRect().top)).size`); tops != 1 {
		t.Errorf("want four groups of one node beside each other, got %d lines", tops)
	}
	w.sees(t, "#map", "NVIDIA-L40S 1 node, 4 of 4 GPUs idle")
}

func TestWideTablesFit(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "")
	for _, table := range []string{"models", "waiting", "nodes", "namespaces"} {
		fits := fmt.Sprintf(`(box => box.scrollWidth <= box.clientWidth)(document.querySelector("#%s-table .scroll"))`, table)
		if !eval[bool](t, w.Tab, fits) {
			t.Errorf("the table %s is wider than its box at 1440 px", table)
		}
	}
}

func TestADayIsACurve(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "")
	w.await(t, `samples.length === 1 && !document.querySelector("#sums .day")`)
	eval[any](t, w.Tab, `(localStorage.setItem(kSamplesKey, JSON.stringify([...Array(400).keys()].map(i => [samples[0][0] - 5 * (400 - i), i % 7, i % 90]))), 0)`)
	w.open(t, "")
	w.await(t, `document.querySelectorAll("#sums svg.day").length === 2 && samples.length <= kSamples`)
	if label := eval[string](t, w.Tab, `document.querySelector("#sums svg.day").getAttribute("aria-label")`); !strings.Contains(label, "waiting pods of the last day") || !strings.Contains(label, ": 0 to ") {
		t.Errorf("the curve says %q", label)
	}
	eval[any](t, w.Tab, `(localStorage.setItem(kSamplesKey, "[[1],{}]"), 0)`)
	w.open(t, "")
	w.await(t, `samples.length === 1`)
}

func TestTablesAreSorted(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "")
	click := func() {
		eval[any](t, w.Tab, `([...document.querySelectorAll("#nodes-table .sorter")].find(one => one.textContent === "Idle").click(), 0)`)
	}
	first := `[...document.querySelectorAll("#nodes-table tbody tr")].slice(0, 1).map(row => row.cells[4].innerText)[0]`
	click()
	if idle := eval[string](t, w.Tab, first); idle != "8" {
		t.Errorf("want the node with most idle GPUs first, got one with %s", idle)
	}
	if sort := eval[string](t, w.Tab, `document.querySelector("#nodes-table th[aria-sort=descending]").innerText`); sort != "Idle" {
		t.Errorf("want the head to say so, got %q", sort)
	}
	click()
	if idle := eval[string](t, w.Tab, first); idle != "0" && idle != "" {
		t.Errorf("want the other way round, got %s", idle)
	}
}

func TestAddressesLeadToNodesPodsAndGroups(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "#node=h100-02")
	w.await(t, `byId("detail").innerText.includes("team-a/train-02-0")`)
	w.sees(t, "#detail", "Node h100-02", "570.86.15", "12.8", "CPU free", "Namespaces", "GPU 7", "3 of 8 GPUs held, 5 idle", "Links between its GPUs")
	eval[any](t, w.Tab, `(location.hash = "#node=mig-0", 0)`)
	w.await(t, `byId("detail").innerText.includes("3g.20gb at 4")`)
	eval[any](t, w.Tab, `(location.hash = "#pod=team-a/big-3", 0)`)
	w.await(t, `byId("detail").innerText.includes("Nodes by the first reason")`)
	w.sees(t, "#detail", "too few idle GPUs", "Nearest nodes", "h100-01")
	eval[any](t, w.Tab, `(location.hash = "#pod=team-b/train-01-2", 0)`)
	w.await(t, `byId("detail").innerText.includes("Why this node")`)
	w.sees(t, "#detail", "expected-waste", "its node")
	eval[any](t, w.Tab, `(location.hash = "#group=team-b/sweep", 0)`)
	w.await(t, `byId("detail").innerText.includes("team-b/sweep-2")`)
	w.expected = []string{"404"}
	eval[any](t, w.Tab, `(location.hash = "#pod=team-a/gone", 0)`)
	w.await(t, `byId("detail").innerText.includes("is not known")`)
	must(t, w.Press("\x1b"))
	w.await(t, `byId("detail").hidden && location.hash === ""`)
}

func TestTheMapIsWalkedByKeys(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "")
	eval[any](t, w.Tab, `(document.querySelector("#map canvas").focus(), 0)`)
	right := `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}))`
	eval[any](t, w.Tab, "("+right+", 0)")
	option := `byId(document.activeElement.getAttribute("aria-activedescendant")).textContent`
	w.await(t, option+`.startsWith("a100-01: ")`)
	for range 5 {
		eval[any](t, w.Tab, "("+right+", 0)")
	}
	w.await(t, option+`.startsWith("a100-06: ") && document.activeElement === map.groups[1].canvas`)
	lists, err := w.Spoken("listbox")
	must(t, err)
	if want := "Map of NVIDIA-A100-SXM4-40GB · zone eu-1a / leaf leaf-6: 6 nodes, "; !slices.ContainsFunc(lists, func(name string) bool { return strings.HasPrefix(name, want) }) {
		t.Errorf("a screen reader knows no list %q: %q", want, lists)
	}
	options, err := w.Spoken("option")
	must(t, err)
	if want := "a100-06: "; !slices.ContainsFunc(options, func(name string) bool { return strings.HasPrefix(name, want) }) {
		t.Errorf("a screen reader does not hear %q: %q", want, options)
	}
	must(t, w.Press("\r"))
	w.await(t, `location.hash === "#node=a100-06" && document.activeElement === byId("detail")`)
	must(t, w.Press("\x1b"))
	w.await(t, `document.activeElement === map.groups[1].canvas`)
}

func TestWhatChangesIsSeenWithoutAReload(t *testing.T) {
	cluster := EightPlainNodes()
	w := newWorld(t, cluster, alone)
	w.open(t, "")
	w.sees(t, "#waiting-table", "No pod waits for a GPU.")
	w.sees(t, "#map", "NVIDIA-A100-SXM4-80GB", "64 of 64 GPUs idle")
	w.api.Change("/api/v1/pods", "ADDED", waiting(pod("late", gpus(8), Object{}), time.Minute))
	w.await(t, `byId("waiting-table").innerText.includes("team-a/late")`)
	w.api.Change("/api/v1/pods", "MODIFIED", bound(pod("late", gpus(8), Object{}), "gpu-3", span(0, 8), 1000))

	w.await(t, `byId("map").innerText.includes("56 of 64 GPUs idle")`)
	w.await(t, `map.groups[0].drawn[3] === "+########"`)
	// A node more is another set of nodes.
	cluster.node("gpu-9", "NVIDIA-A100-SXM4-80GB", Object{"nvidia.com/gpu": "8"}, nil)
	w.api.Change("/api/v1/nodes", "ADDED", cluster.Nodes[8])
	w.await(t, `byId("map").innerText.includes("9 nodes, 64 of 72 GPUs idle")`)
}

func TestNothingIsAskedWhileNobodyLooksOrNothingChanges(t *testing.T) {
	w := newWorld(t, EightPlainNodes(), alone)
	w.open(t, "")
	drawn := `performance.getEntriesByName("refresh").length`
	w.await(t, drawn+" >= 2") // the second is the first without the names
	before := eval[int](t, w.Tab, drawn)
	requests := `performance.getEntriesByType("resource").filter(one => one.name.includes("/debug/live")).length`
	w.await(t, fmt.Sprintf("%s >= %d", requests, eval[int](t, w.Tab, requests)+2))
	if after := eval[int](t, w.Tab, drawn); after != before {
		t.Errorf("nothing has changed, and the page was drawn %d times", after-before)
	}
	hide := func(hidden bool) {
		eval[any](t, w.Tab, fmt.Sprintf(`(Object.defineProperty(document, "hidden", {configurable: true, get: () => %v}),
			document.dispatchEvent(new Event("visibilitychange")), 0)`, hidden))
	}
	hide(true)
	w.await(t, "!page.asking") // what was asked before is still answered
	before = eval[int](t, w.Tab, requests)
	time.Sleep(5 * time.Second)
	if after := eval[int](t, w.Tab, requests); after != before {
		t.Errorf("it asked %d times while it was hidden", after-before)
	}
	if eval[bool](t, w.Tab, `ticking !== null`) {
		t.Error("a timer runs while it is hidden")
	}
	hide(false)
	w.await(t, fmt.Sprintf("%s > %d", requests, before))
}

func TestAServerThatIsGoneLeavesItsLastPicture(t *testing.T) {
	w := newWorld(t, EightPlainNodes(), alone)
	w.expected = []string{"ERR_CONNECTION", "ERR_EMPTY_RESPONSE"}
	w.open(t, "")
	w.berth.Stop()
	w.await(t, `byId("status").className.includes("off") && !byId("trouble").hidden`)
	w.sees(t, "#trouble", "Berth does not answer", "The page shows the state of ")
	w.sees(t, "#status", "last update")
	w.sees(t, "#map", "64 of 64 GPUs idle")
}

func TestAnEmptyCluster(t *testing.T) {
	w := newWorld(t, Cluster{}, alone)
	must(t, w.Go(w.berth.URL))
	w.await(t, `byId("status").textContent === "live"`)
	w.sees(t, "#waiting-table", "No pod waits for a GPU.")
	w.sees(t, "#nodes-table", "No node with GPUs is known.")
	must(t, w.Picture(kept(t, "page-empty.png"), false))
}

func TestAStandbySaysThatItIsOne(t *testing.T) {
	w := newWorld(t, EightPlainNodes(), "") // the lease is somebody else's
	must(t, w.Go(w.berth.URL))
	w.await(t, `!byId("trouble").hidden`)
	w.sees(t, "#trouble", "This replica has nothing to show: not the leader (lease held elsewhere")
	w.sees(t, "#status", "not the leader")
	w.await(t, `byId("main").hidden`) // and does not look like an empty cluster
	must(t, w.Picture(kept(t, "page-standby.png"), false))
}

func TestTheClusterHasAName(t *testing.T) {
	w := newWorld(t, EightPlainNodes(), alone+"clusterName: <b>prod-eu\n")
	w.open(t, "")
	w.sees(t, "header", "<b>prod-eu")
	if title := eval[string](t, w.Tab, `document.title`); title != "<b>prod-eu · Berth" {
		t.Errorf("the title is %q", title)
	}
}

func TestALargeClusterIsOnePage(t *testing.T) {
	w := newWorld(t, Large(1700, 60), alone)
	w.open(t, "")
	w.await(t, `map.groups.some(group => group.drawn.length > 0)`)
	if groups := eval[int](t, w.Tab, `map.groups.length`); groups != 4 {
		t.Errorf("54 leaves of 4 models: want a map by model, got %d parts", groups)
	}
	if !eval[bool](t, w.Tab, `byId("map").getBoundingClientRect().top < byId("waiting").getBoundingClientRect().top`) {
		t.Error("want the map first")
	}
	// 60 pods wait for the same thing.
	rows := `document.querySelectorAll("#waiting-table tbody tr").length`
	w.sees(t, "#waiting-table", "60 pods", "of team-a", "225 GPUs in all")
	if shown := eval[int](t, w.Tab, rows); shown != 1 {
		t.Errorf("want one row, got %d", shown)
	}
	eval[any](t, w.Tab, `(document.querySelector("#waiting-table .folder").focus(), 0)`)
	must(t, w.Press("\r"))
	w.await(t, rows+` === kManyWait && document.activeElement.getAttribute("aria-expanded") === "true"`)
	w.sees(t, "#waiting-table", "team-a/waits-00059", "Show more of 61")
	must(t, w.Press("\r"))
	w.await(t, rows+` === 1 && document.activeElement.className === "folder"`)
	eval[any](t, w.Tab, `(byId("waiting-by").value = "none", byId("waiting-by").onchange(), 0)`)
	w.await(t, rows+` === kManyWait`)
	eval[any](t, w.Tab, `(byId("group-by").value = "both", byId("group-by").onchange(), 0)`)
	w.await(t, `map.groups.length > 50`)
	must(t, w.Picture(kept(t, "page-large.png"), false))
}

func TestWaitingPodsAreGroupedByCauseAndGang(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	w.open(t, "")
	eval[any](t, w.Tab, `(byId("waiting-by").value = "cause", byId("waiting-by").onchange(), 0)`)
	w.sees(t, "#waiting-table", "3 pods of team-b", "team-b/sweep", "team-a/wrong-words", "scheduling gates")
	if seen := w.Text("#waiting-table"); strings.Contains(seen, "team-b/sweep-1") {
		t.Errorf("the pods of the gang are folded: %q", seen)
	}
	eval[any](t, w.Tab, `([...document.querySelectorAll(".folder")].find(one => one.closest("tr").innerText.includes("team-b/sweep")).click(), 0)`)
	w.sees(t, "#waiting-table", "team-b/sweep-1")
}

func TestAViewIsOneNamespaceOrClass(t *testing.T) {
	cluster := SomeOfEverything()
	for _, p := range cluster.Pods {
		if strings.HasPrefix(meta(p)["name"].(string), "infer-") || meta(p)["name"] == "too-big" {
			meta(p)["labels"] = Object{"workload": "inference"}
		}
	}
	w := newWorld(t, cluster, alone+"workloadClasses: [{name: inference, labels: [workload=inference]}]\n")
	w.open(t, "?namespace=team-b")
	w.await(t, `byId("view-sum").innerText.includes("on 8 nodes")`)
	w.sees(t, "#view-sum", "Namespace team-b: ", "3 pods wait for 12 GPUs.")
	w.await(t, `/^3\s+pods wait, for 12 GPUs/.test(byId("sums").innerText.trim())`)
	w.sees(t, "#sums", "held by team-b")
	w.sees(t, "#nodes-sum", "8 of 43 nodes")
	w.await(t, `map.matches.size === 8 && map.matches.has("h100-01") && !map.matches.has("h100-02")`)
	if seen := w.Text("#waiting-table"); strings.Contains(seen, "team-a/") {
		t.Errorf("pods of others: %q", seen)
	}
	w.sees(t, "#namespaces-table", "team-a", "team-b", "lab")
	eval[any](t, w.Tab, `(byId("view").value = "class inference", byId("view").onchange(), 0)`)
	w.await(t, `location.search === "?class=inference" && byId("view-sum").innerText.includes("on 2 nodes")`)
	w.sees(t, "#view-sum", "Workload class inference: ", "1 pod waits for 64 GPUs.")
	w.await(t, `map.matches.size === 2 && map.matches.has("l4-1")`)
	eval[any](t, w.Tab, `([...document.querySelectorAll("#namespaces-table a")].find(one => one.textContent === "lab").click(), 0)`)
	w.await(t, `map.matches?.size === 8 && map.matches.has("a100-00")`)
	eval[any](t, w.Tab, `(history.back(), 0)`)
	w.await(t, `byId("view").value === "class inference"`)
	eval[any](t, w.Tab, `(byId("view").value = "", byId("view").onchange(), 0)`)
	w.await(t, `byId("view-sum").hidden && map.matches === null && location.search === ""`)
	if seen := w.Text("#sums"); strings.Contains(seen, "held by") {
		t.Errorf("the whole cluster: %q", seen)
	}
}

func TestPaperHasTheWholeMap(t *testing.T) {
	w := newWorld(t, Large(1700, 5), alone)
	must(t, w.Prefer("dark"))
	w.open(t, "")
	if drawn := eval[int](t, w.Tab, `map.groups.filter(group => group.drawn.length > 0).length`); drawn == 4 {
		t.Fatal("the window shows everything: this proves nothing")
	}
	eval[any](t, w.Tab, `(window.cleared = 0, CanvasRenderingContext2D.prototype.clearRect = () => { window.cleared += 1; },
		addEventListener("beforeprint", () => {
			window.printed = map.groups.filter(group => group.drawn.length > 0).length;
			window.paper = getComputedStyle(document.documentElement).getPropertyValue("--card");
		}), 0)`)
	pdf, err := w.Print()
	must(t, err)
	must(t, os.WriteFile(kept(t, "page-printed.pdf"), pdf, 0o644))
	if len(pdf) < 50_000 {
		t.Errorf("13,600 GPUs on paper: want more than %d bytes", len(pdf))
	}
	// A PDF knows no way to clear: what was drawn before would be gone, the whole page.
	if cleared := eval[int](t, w.Tab, `window.cleared`); cleared != 0 {
		t.Errorf("on paper parts of the map were cleared %d times", cleared)
	}
	w.await(t, `window.printed === 4 && window.paper.trim() === "#ffffff"`)
	if dark := eval[string](t, w.Tab, `map.colours.card`); dark != "#181c21" {
		t.Errorf("after printing the map is of the dark theme again: got %s", dark)
	}
}

func TestDarkAndLight(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	ground := `getComputedStyle(document.body).backgroundColor`
	must(t, w.Prefer("dark"))
	w.open(t, "")
	dark := eval[string](t, w.Tab, ground)
	must(t, w.Prefer("light"))
	w.await(t, fmt.Sprintf(`%s !== %q`, ground, dark))
	light := eval[string](t, w.Tab, ground)
	press := func(want string) {
		eval[any](t, w.Tab, `(byId("theme").click(), 0)`)
		w.sees(t, "#theme", "Theme: "+want)
	}
	press("light")
	press("dark")
	if now := eval[string](t, w.Tab, ground); now != dark {
		t.Errorf("the switch: want %s, got %s", dark, now)
	}
	must(t, w.Go(w.berth.URL))
	w.await(t, fmt.Sprintf(`%s === %q`, ground, dark)) // it is remembered
	press("system")
	if now := eval[string](t, w.Tab, ground); now != light {
		t.Errorf("by the system again: want %s, got %s", light, now)
	}
}

func TestPicturesAreKept(t *testing.T) {
	w := newWorld(t, SomeOfEverything(), alone)
	for _, scheme := range []string{"light", "dark"} {
		must(t, w.Prefer(scheme))
		must(t, w.Size(1440, 2600, false))
		w.open(t, "#node=h100-02")
		w.await(t, `map.groups.every(group => group.drawn.length > 0)`)
		must(t, w.Picture(kept(t, "page-"+scheme+".png"), false))
		must(t, w.Size(390, 844, true))
		must(t, w.Go("about:blank"))
		w.open(t, "")
		if wide := eval[int](t, w.Tab, `document.documentElement.scrollWidth`); wide > 390 {
			t.Errorf("the page is %d wide on a phone of 390", wide)
		}
		must(t, w.Picture(kept(t, "page-phone-"+scheme+".png"), true))
	}
}

func TestTheEndOfAReplayIsTheSamePage(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		return filepath.Join(folder, name)
	}
	nodes := write("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,4,A100\nn2,64000,262144,4,A100\n")
	tasks := write("tasks.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"+
		"a,4000,1024,3,1000,\nb,4000,1024,2,1000,\nc,4000,1024,1,500,\nd,4000,1024,4,1000,\n")
	end := filepath.Join(folder, "end.html")
	replay := exec.Command(filepath.Join(os.Getenv("BERTH_BIN"), "berth-replay"), "run", "--nodes", nodes, "--tasks", tasks,
		"--policy", "best-fit", "--page", end)
	if output, err := replay.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	tab, err := OpenTab(1440, 900)
	must(t, err)
	defer tab.Close()
	w := &world{Tab: tab}
	must(t, w.Go("file://"+end))
	w.await(t, `document.querySelector("#nodes-table tbody tr")`)
	w.sees(t, "#status", "end of tasks with best-fit, seed 42")
	w.sees(t, "#waiting-table", "no node took it when it came")
	w.sees(t, "#map", "A100", "2 nodes")
	eval[any](t, w.Tab, `(document.querySelector("#nodes-table a").click(), 0)`)
	w.await(t, `byId("detail").innerText.includes("GPU 3")`)
	time.Sleep(4 * time.Second)
	if requests := eval[int](t, w.Tab, `performance.getEntriesByType("resource").length`); requests != 0 {
		t.Errorf("a file asks nobody, and it asked %d times", requests)
	}
	for _, fault := range tab.Faults() {
		t.Errorf("on the console: %s", fault)
	}
	must(t, w.Picture(kept(t, "page-replay.png"), false))
}
