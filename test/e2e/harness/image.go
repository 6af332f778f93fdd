// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// WorkImage is the image of the containers of the tests: one static program, see work/main.go.
const WorkImage = "berth.test/work:1"

// imageConfig is the part of an image's configuration that counts here.
type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		Entrypoint []string `json:"Entrypoint"`
		Env        []string `json:"Env"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// ImageArchive is an image of one layer as `docker save` writes it, made without any tool: path in the image to file
// of this machine, a link followed. The same files give the same bytes.
func ImageArchive(t T, name string, files map[string]string, entrypoint ...string) []byte {
	t.Helper()
	layer := map[string][]byte{}
	for path, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("image %s: %v", name, err)
		}
		layer[strings.TrimPrefix(path, "/")] = text
	}
	bytesOfLayer := tarOf(t, layer)
	config := imageConfig{Architecture: runtime.GOARCH, OS: "linux"}
	config.Config.Entrypoint = entrypoint
	config.Config.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	config.RootFS.Type = "layers"
	config.RootFS.DiffIDs = []string{fmt.Sprintf("sha256:%x", sha256.Sum256(bytesOfLayer))}
	text, _ := json.Marshal(config)
	configName := fmt.Sprintf("%x.json", sha256.Sum256(text))
	manifest, _ := json.Marshal([]map[string]any{
		{"Config": configName, "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	return tarOf(t, map[string][]byte{configName: text, "layer.tar": bytesOfLayer, "manifest.json": manifest})
}

// tarOf is an archive of these files, executable, of no date.
func tarOf(t T, files map[string][]byte) []byte {
	t.Helper()
	var all bytes.Buffer
	archive := tar.NewWriter(&all)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name])), Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatalf("%v", err)
		}
		if _, err := archive.Write(files[name]); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatalf("%v", err)
	}
	return all.Bytes()
}
