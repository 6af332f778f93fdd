// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// What keeps the ports of FreePort from other programs of the harness: a socket of that name.
var taken []net.Listener

// FreePort is a loopback port that nobody listens on. It lies below the range that the kernel gives to outgoing
// connections, so that a server that is away for a moment finds its port again. Until this program ends, no other one
// of the harness gets it: several tests run at once.
func FreePort(t T) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(12000)
		ours, err := net.Listen("unix", fmt.Sprintf("@berth-e2e-port-%d", port))
		if err != nil {
			continue
		}
		taken = append(taken, ours)
		listener, err := net.Listen("tcp", address(port))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatalf("no free port found")
	return 0
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
