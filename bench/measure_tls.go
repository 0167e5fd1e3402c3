//go:build linux

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

func measureTLS(b *bench, all []*running) (sample, error) {
	v, err := b.cpuOfRequests(all[0], "-c32")
	return sample{value: v}, err
}

// measureH2 asks on a few connections with many streams each.
func measureH2(b *bench, all []*running) (sample, error) {
	return b.h2Load(all[0], "/")
}

// h2Load asks for a path on a few connections with many streams each.
func (b *bench) h2Load(r *running, path string, args ...string) (sample, error) {
	args = append([]string{"-c8", "-m16", "-D" + strconv.Itoa(b.options.seconds)}, args...)
	v, err := r.cpuPer(time.Microsecond, func() (int, error) {
		result, err := b.h2load(r, path, args...)
		return result.done, err
	})
	return sample{value: v}, err
}

func measureH2Downloads(b *bench, all []*running) (sample, error) {
	return b.h2Bodies(all[0], func(n int) (h2loadResult, error) {
		result, err := b.h2load(all[0], "/body", "-c1", "-m1", "-n"+strconv.Itoa(n))
		if err == nil && result.data != n*bodySize {
			err = fmt.Errorf("%d bytes came of %d", result.data, n*bodySize)
		}
		return result, err
	})
}

func measureH2Uploads(b *bench, all []*running) (sample, error) {
	file := filepath.Join(b.upstream.dir, "body")
	return b.h2Bodies(all[0], func(n int) (h2loadResult, error) {
		return b.h2load(all[0], "/sink", "-c1", "-m1", "-n"+strconv.Itoa(n), "-d"+file)
	})
}

// h2Bodies moves large bodies one after the other on one connection, as many as
// fit into the time of a measurement. The first tells how many that are.
func (b *bench) h2Bodies(r *running, move func(n int) (h2loadResult, error)) (sample, error) {
	first, err := move(1)
	if err != nil {
		return sample{}, err
	}
	n := max(fewestBodies, int(b.duration/first.took))
	v, err := r.cpuPer(time.Millisecond, func() (int, error) {
		_, err := move(n)
		return n, err
	})
	return sample{value: v}, err
}

// handshakeClients is how many clients do handshakes at once.
const handshakeClients = 16

// measureHandshakes opens connections with full handshakes.
func measureHandshakes(b *bench, all []*running) (sample, error) {
	return b.handshakes(all[0], false)
}

// measureResumed opens connections that resume the session of the one before.
func measureResumed(b *bench, all []*running) (sample, error) {
	return b.handshakes(all[0], true)
}

// handshakes opens one connection after the other, each for one request.
func (b *bench) handshakes(r *running, resume bool) (sample, error) {
	clients := make([]*shaker, handshakeClients)
	for i := range clients {
		var err error
		if clients[i], err = newShaker(r, resume); err != nil {
			return sample{}, err
		}
	}
	v, err := r.cpuPer(time.Microsecond, func() (int, error) {
		var done atomic.Int64
		failures := make([]error, len(clients))
		var wg sync.WaitGroup
		end := time.Now().Add(b.duration)
		for i, c := range clients {
			wg.Go(func() {
				for failures[i] == nil && time.Now().Before(end) {
					if failures[i] = c.shake(resume); failures[i] == nil {
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

// shaker is a client that makes a connection for each request.
type shaker struct {
	to      target
	request []byte
}

// newShaker returns a client. One that is to resume has a session to begin with,
// from a connection that is not measured.
func newShaker(r *running, resume bool) (*shaker, error) {
	s := &shaker{request: get("/", r.setup.host(0), "Connection: close")}
	var sessions tls.ClientSessionCache
	if resume {
		sessions = tls.NewLRUClientSessionCache(1)
	}
	s.to = r.setup.target(h1, sessions)
	return s, s.shake(false)
}

// shake makes one connection and asks once. The handshake must be a resumed one,
// or must not be.
func (s *shaker) shake(resumed bool) error {
	c, err := dial(s.to)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if got := c.conn.(*tls.Conn).ConnectionState().DidResume; got != resumed {
		return fmt.Errorf("session resumed: %v, want %v", got, resumed)
	}
	body, err := c.do(s.request)
	if err == nil && string(body) != hundredBytes {
		err = fmt.Errorf("got %q", body)
	}
	return err
}

// measureIdleH2 opens HTTP/2 connections, asks once on each, and sees by how much
// the peer grew.
func measureIdleH2(b *bench, all []*running) (sample, error) {
	r := all[0]
	to := r.setup.target(h2, nil)
	return b.growth(r, func() (io.Closer, error) {
		conn, err := to.connect()
		if err != nil {
			return nil, err
		}
		return conn, askH2(conn, r.setup.host(0))
	})
}
