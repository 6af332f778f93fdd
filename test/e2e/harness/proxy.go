// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"io"
	"net"
	"sync"
)

// Proxy passes TCP connections on to a target, and cuts them on demand.
type Proxy struct {
	listener net.Listener
	target   string

	mutex sync.Mutex
	open  map[net.Conn]struct{}
}

// NewProxy listens on a port of its own.
func NewProxy(t T, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("%v", err)
	}
	p := &Proxy{listener: listener, target: target, open: map[net.Conn]struct{}{}}
	go p.accept()
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
	})
	return p
}

// Address is HOST:PORT to connect to.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Cut closes every connection that is open now and gives their number; new ones are taken as before.
func (p *Proxy) Cut() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for conn := range p.open {
		_ = conn.Close()
	}
	return len(p.open)
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(conn)
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.track(client, true)
	defer p.track(client, false)
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close() // ends the copy below
	}()
	_, _ = io.Copy(client, server)
}

func (p *Proxy) track(conn net.Conn, isOpen bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if isOpen {
		p.open[conn] = struct{}{}
	} else {
		delete(p.open, conn)
	}
}
