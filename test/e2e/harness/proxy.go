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

	mutex  sync.Mutex
	target string
	open   map[net.Conn]struct{}
}

// NewProxy listens on a port of its own.
func NewProxy(t T, target string) *Proxy {
	t.Helper()
	return NewProxyAt(t, "127.0.0.1:0", target)
}

// NewProxyAt listens on this HOST:PORT.
func NewProxyAt(t T, listen, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", listen)
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

// Target is where connections go from now on; those that are open stay.
func (p *Proxy) Target(target string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.target = target
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
	target := p.opened(client)
	defer p.closed(client)
	server, err := net.Dial("tcp", target)
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

func (p *Proxy) opened(conn net.Conn) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.open[conn] = struct{}{}
	return p.target
}

func (p *Proxy) closed(conn net.Conn) {
	_ = conn.Close()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.open, conn)
}
