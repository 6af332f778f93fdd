// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"
)

func background() context.Context { return context.Background() }

// Eventually tries until done returns nil, and fails the test with done's last error after limit;
// what completes "waited for".
func Eventually(t T, what string, limit time.Duration, done func() error) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s: %v", limit, what, err)
		}
	}
}

// withoutChecks does not check certificates: it asks a process of ours on loopback, and tells it nothing.
func withoutChecks() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
}

// okAt is nil when url answers 200.
func okAt(client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(background(), 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
