// SPDX-License-Identifier: Apache-2.0

// Measures the live page of a large cluster in a browser: how many bytes a refresh is, how soon something is seen, and
// for how long a refresh keeps the page's thread.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"berth.dev/page"
)

func main() {
	nodes := flag.Int("nodes", 5000, "of 8 GPUs each")
	waits := flag.Int("waiting", 200, "pods that wait")
	rounds := flag.Int("rounds", 10, "refreshes that are measured, with the top and with the map in view")
	flag.Parse()
	if err := measure(*nodes, *waits, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(nodes, waits, rounds int) error {
	cluster := page.Large(nodes, waits)
	api := page.NewAPIServer(cluster)
	defer api.Stop()
	folder, err := os.MkdirTemp("", "berth-page")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	berth, err := page.StartBerth(folder, api.URL, "leaderElection: {enabled: false}\n")
	if err != nil {
		return err
	}
	defer berth.Stop()
	if err := ready(berth.URL); err != nil {
		return err
	}
	fmt.Printf("%d nodes of 8 GPUs, %d pods, %d of them wait\n", nodes, len(cluster.Pods), waits)
	if err := sizes(berth.URL); err != nil {
		return err
	}
	tab, err := page.OpenTab(1440, 900)
	if err != nil {
		return err
	}
	defer tab.Close()
	if err := first(tab, berth.URL); err != nil {
		return err
	}
	if err := refreshes(tab, api, cluster, rounds); err != nil {
		return err
	}
	return hidden(tab)
}

// ready waits until Berth has read the cluster.
func ready(url string) error {
	for begun := time.Now(); time.Since(begun) < 2*time.Minute; time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get(url + "/readyz")
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
	}
	return errors.New("berth has not read the cluster after two minutes")
}

// packed is the length of an answer as it is sent.
func packed(url string) (int, []byte, string, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, "", err
	}
	request.Header.Set("Accept-Encoding", "gzip")
	client := http.Client{Transport: &http.Transport{DisableCompression: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return len(body), body, answer.Header.Get("Content-Encoding"), err
}

func sizes(url string) error {
	total := 0
	for _, path := range []string{"/", "/page.css", "/page.js"} {
		size, _, _, err := packed(url + path)
		if err != nil {
			return err
		}
		total += size
	}
	time.Sleep(3 * time.Second) // until it says why all pods wait
	whole, _, _, err := packed(url + "/debug/live")
	if err != nil {
		return err
	}
	plain, err := http.Get(url + "/debug/live")
	if err != nil {
		return err
	}
	defer func() { _ = plain.Body.Close() }()
	var live struct{ Set string }
	if err := json.NewDecoder(plain.Body).Decode(&live); err != nil {
		return err
	}
	brief, _, encoding, err := packed(url + "/debug/live?set=" + live.Set)
	if err != nil {
		return err
	}
	if encoding != "gzip" {
		return errors.New("the answer is not compressed")
	}
	fmt.Printf("compressed: the page's files %.1f kB, the first picture %.1f kB, a refresh %.1f kB\n",
		kB(total), kB(whole), kB(brief))
	return nil
}

func kB(bytes int) float64 { return float64(bytes) / 1000 }

func first(tab *page.Tab, url string) error {
	var paint, drawn []float64
	for range 5 {
		if err := tab.Go("about:blank"); err != nil {
			return err
		}
		if err := tab.Go(url); err != nil {
			return err
		}
		if err := tab.Await(`performance.getEntriesByName("refresh").length > 0`); err != nil {
			return err
		}
		at, err := page.Eval[[]float64](tab, `[performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1,
			performance.getEntriesByName("refresh")[0].startTime + performance.getEntriesByName("refresh")[0].duration]`)
		if err != nil {
			return err
		}
		paint, drawn = append(paint, at[0]), append(drawn, at[1])
	}
	high, err := page.Eval[int](tab, `document.documentElement.scrollHeight`)
	if err != nil {
		return err
	}
	fmt.Printf("the page is %d pixels high in a window of 1440\n", high)
	fmt.Printf("first paint %.0f ms, all drawn %.0f ms after the address was opened (median of 5; worst %.0f, %.0f)\n",
		median(paint), median(drawn), slices.Max(paint), slices.Max(drawn))
	return nil
}

// refreshes have one pod in a hundred go each time.
func refreshes(tab *page.Tab, api *page.APIServer, cluster page.Cluster, rounds int) error {
	if _, err := page.Eval[any](tab, `(window.tasks = [], new PerformanceObserver(list => tasks.push(...list.getEntries().map(one => one.duration))).observe({type: "longtask"}), 0)`); err != nil {
		return err
	}
	gone := 0
	for _, where := range []string{"top", "map"} {
		if _, err := page.Eval[any](tab, `(scrollTo(0, `+map[string]string{"top": "0", "map": "1200"}[where]+`), 0)`); err != nil {
			return err
		}
		before, err := tab.TaskSeconds()
		if err != nil {
			return err
		}
		begun, err := page.Eval[int](tab, `performance.getEntriesByName("refresh").length`)
		if err != nil {
			return err
		}
		for round := range rounds {
			for i := gone; i < len(cluster.Pods); i += 100 {
				if pod := cluster.Pods[i]; pod["spec"].(page.Object)["nodeName"] != nil {
					api.Change("/api/v1/pods", "DELETED", pod)
				}
			}
			gone++
			// Without asking again and again, which would be measured too.
			if _, err := page.Eval[int](tab, fmt.Sprintf(`new Promise(done => {
				const look = () => { const seen = performance.getEntriesByName("refresh").length; if (seen > %d) done(seen); };
				new PerformanceObserver(look).observe({type: "measure"});
				look();
			})`, begun+round)); err != nil {
				return err
			}
		}
		after, err := tab.TaskSeconds()
		if err != nil {
			return err
		}
		times, err := page.Eval[[]float64](tab, fmt.Sprintf(`performance.getEntriesByName("refresh").slice(%d).map(one => one.duration)`, begun))
		if err != nil {
			return err
		}
		fmt.Printf("a refresh, %s in view: drawn in %.1f ms (worst %.1f); the page's thread %.1f ms, with all that it does in these three seconds\n",
			where, median(times), slices.Max(times), 1000*(after-before)/float64(len(times)))
	}
	tasks, err := page.Eval[[]float64](tab, `tasks`)
	if err != nil {
		return err
	}
	fmt.Printf("tasks of 50 ms and more meanwhile: %d\n", len(tasks))
	return nil
}

func hidden(tab *page.Tab) error {
	_, err := page.Eval[any](tab, `(Object.defineProperty(document, "hidden", {configurable: true, get: () => true}),
		document.dispatchEvent(new Event("visibilitychange")), 0)`)
	if err != nil {
		return err
	}
	time.Sleep(time.Second)
	before, err := tab.TaskSeconds()
	if err != nil {
		return err
	}
	time.Sleep(10 * time.Second)
	after, err := tab.TaskSeconds()
	if err != nil {
		return err
	}
	fmt.Printf("hidden: %.1f ms of the page's thread in 10 s\n", 1000*(after-before))
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
