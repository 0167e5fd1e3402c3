//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// tunnelPath is where peers pass upgrades on to the echo server.
const tunnelPath = "/ws"

// tunnelClients is how many WebSockets send messages at once.
const tunnelClients = 64

// message is what they send: a frame of RFC 6455 with 100 bytes. The peers do not
// look at it.
var message = append([]byte{0x82, 100}, hundredBytes...)

// echoServer switches to WebSocket and sends back what it gets. It belongs to the
// harness, and runs where the load does.
type echoServer struct {
	address  string
	listener net.Listener
}

// startEcho starts an echo server.
func startEcho() (*echoServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &echoServer{l.Addr().String(), l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go e.serve(conn)
		}
	}()
	return e, nil
}

func (e *echoServer) serve(conn net.Conn) {
	defer conn.Close()
	// A small buffer, as there are thousands of them.
	r := bufio.NewReaderSize(conn, 512)
	if _, err := http.ReadRequest(r); err != nil {
		return
	}
	_, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n")
	buf := make([]byte, 256)
	for err == nil {
		var n int
		if n, err = r.Read(buf); err == nil {
			_, err = conn.Write(buf[:n])
		}
	}
}

// withTunnels is a plain setup with an echo server behind it.
func withTunnels() []setup { return []setup{{tunnels: true}} }

// passesTunnels reports the peers that are measured with WebSockets.
func passesTunnels(p peer) bool {
	return p.name == "headgate" || p.name == "before" || p.name == "nginx"
}

// openTunnel upgrades a connection to the peer.
func openTunnel(r *running) (net.Conn, error) {
	conn, err := net.Dial("tcp", r.setup.address)
	if err != nil {
		return nil, err
	}
	request := get(tunnelPath, r.setup.host(0), "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
	if _, err := conn.Write(request); err != nil {
		return conn, err
	}
	var buf [1024]byte
	n := 0
	for {
		m, err := conn.Read(buf[n:])
		n += m
		if h, ok := parseHead(buf[:n]); ok {
			if h.status != "101" {
				return conn, fmt.Errorf("status %s", h.status)
			}
			return conn, nil
		}
		if err != nil {
			return conn, fmt.Errorf("upgrade: %w", err)
		}
	}
}

// measureTunnels sends messages through WebSockets and waits for each to come back.
func measureTunnels(b *bench, all []*running) (sample, error) {
	conns := make([]net.Conn, tunnelClients)
	for i := range conns {
		var err error
		if conns[i], err = openTunnel(all[0]); err != nil {
			return sample{}, err
		}
		defer conns[i].Close()
	}
	v, err := all[0].cpuPer(time.Microsecond, func() (int, error) {
		var done atomic.Int64
		failures := make([]error, len(conns))
		var wg sync.WaitGroup
		end := time.Now().Add(b.duration)
		for i, conn := range conns {
			wg.Go(func() {
				buf := make([]byte, len(message))
				for failures[i] == nil && time.Now().Before(end) {
					if _, failures[i] = conn.Write(message); failures[i] != nil {
						return
					}
					if _, failures[i] = io.ReadFull(conn, buf); failures[i] == nil {
						done.Add(1)
					}
				}
			})
		}
		wg.Wait()
		return int(done.Load()), errors.Join(failures...)
	})
	return sample{value: v}, err
}

// measureIdleTunnels opens WebSockets and sees by how much the peer grew.
func measureIdleTunnels(b *bench, all []*running) (sample, error) {
	return b.growth(all[0], func() (io.Closer, error) {
		conn, err := openTunnel(all[0])
		if err != nil {
			return conn, err
		}
		if _, err = conn.Write(message); err == nil {
			_, err = io.ReadFull(conn, make([]byte, len(message)))
		}
		return conn, err
	})
}
