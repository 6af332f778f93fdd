// SPDX-License-Identifier: Apache-2.0

// Takes the pictures of the live page that the documentation shows, in both themes.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"berth.dev/page"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pictures FOLDER")
		os.Exit(2)
	}
	if err := take(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func take(folder string) error {
	api := page.NewAPIServer(page.SomeOfEverything())
	defer api.Stop()
	scratch, err := os.MkdirTemp("", "berth-pictures")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	berth, err := page.StartBerth(scratch, api.URL, "leaderElection: {enabled: false}\nclusterName: prod-eu\n")
	if err != nil {
		return err
	}
	defer berth.Stop()
	tab, err := page.OpenTab(1280, 900)
	if err != nil {
		return err
	}
	defer tab.Close()
	for _, theme := range []string{"light", "dark"} {
		if err := tab.Prefer(theme); err != nil {
			return err
		}
		if err := tab.Go(berth.URL + "/#node=h100-02"); err != nil {
			return err
		}
		if err := tab.Await(`byId("detail").innerText.includes("Links between its GPUs") && map.groups[0].drawn.length > 0 &&
			!byId("waiting-table").innerText.includes("open it to see why")`); err != nil {
			return err
		}
		if err := tab.Small(filepath.Join(folder, "page-"+theme+".webp")); err != nil {
			return err
		}
	}
	return nil
}
