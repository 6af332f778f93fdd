// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
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
