//go:build linux

package main

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// measureApply changes one route of many proxies, and takes the time from the
// moment the file is in place until the new answer comes.
func measureApply(b *bench, all []*running) (sample, error) {
	r := all[0]
	next := r.setup
	next.generation++
	if err := r.change(next); err != nil {
		return sample{}, err
	}
	written := time.Now()
	if err := r.acts(b); err != nil {
		return sample{}, err
	}
	return sample{value: float64(time.Since(written).Microseconds()) / 1e3}, nil
}

// acts waits until the last change acts on every address.
func (r *running) acts(b *bench) error {
	request := get("/generation", r.setup.host(0))
	want := strconv.Itoa(r.setup.generation)
	for _, address := range []string{r.setup.address, r.setup.moving} {
		if address == "" {
			continue
		}
		if err := ready(b.ctx, r.process, target{address: address}, request, want); err != nil {
			return fmt.Errorf("generation %s on %s: %w", want, address, err)
		}
	}
	return nil
}

// changes is how many changes are made under load.
const changes = 20

// measureChanges changes servers and moves a port, again and again, while clients
// ask without a pause: on the port that stays and on the one that moves, on kept
// connections and on new ones. It counts the requests that got no right answer.
func measureChanges(b *bench, all []*running) (sample, error) {
	r := all[0]
	spare, err := freeAddresses(1)
	if err != nil {
		return sample{}, err
	}
	moving := [2]string{r.setup.moving, spare[0]}
	l := &load{request: get("/", r.setup.host(0)), stop: make(chan struct{})}
	l.start([]string{r.setup.address}, true, 8)
	l.start([]string{r.setup.address}, false, 4)
	l.start(moving[:], true, 4)
	l.start(moving[:], false, 4)

	err = b.changeOften(r, moving)
	close(l.stop)
	l.wg.Wait()
	if err != nil {
		return sample{}, err
	}
	if lost := l.lost.Load(); lost > 0 {
		fmt.Printf("    first loss: %v\n", l.first.Load())
	}
	return sample{value: float64(l.lost.Load()), of: int(l.sent.Load())}, nil
}

// changeOften makes the changes one after the other, each when the one before
// acts and some load went through it.
func (b *bench) changeOften(r *running, moving [2]string) error {
	pause := time.NewTicker(max(b.duration/changes, 50*time.Millisecond))
	defer pause.Stop()
	up := b.upstream.addresses[:]
	for i := range changes {
		next := r.setup
		next.generation++
		next.moving = moving[(i+1)%2]
		next.upstreams = [][]string{up[:1], up, up[1:]}[i%3]
		if err := r.change(next); err != nil {
			return err
		}
		if err := r.acts(b); err != nil {
			return err
		}
		<-pause.C
	}
	return nil
}

// load is clients that ask without a pause.
type load struct {
	request []byte
	stop    chan struct{}
	wg      sync.WaitGroup

	sent, lost atomic.Int64
	first      atomic.Value // the first loss, a string
}

// start starts n clients. They ask the first of the addresses that takes their
// connection, and keep it if keep is set.
func (l *load) start(addresses []string, keep bool, n int) {
	for range n {
		l.wg.Go(func() {
			v := visitor{load: l, addresses: addresses, keep: keep}
			defer v.leave()
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				l.sent.Add(1)
				if err := v.visit(); err != nil {
					l.lost.Add(1)
					l.first.CompareAndSwap(nil, err.Error())
					v.leave()
				}
			}
		})
	}
}

// visitor is one client of the load.
type visitor struct {
	load      *load
	addresses []string
	keep      bool
	client    *client // nil without a connection
}

// visit sends one request. A kept connection that was closed before it brought
// any answer proves nothing: the server may have closed it just before the
// request came, so the request is sent once more on a new one (RFC 9112, section
// 9.3.1).
func (v *visitor) visit() error {
	for {
		if err := v.connect(); err != nil {
			return err
		}
		used := v.client.served > 0
		if err := v.client.conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		body, err := v.client.do(v.load.request)
		if errors.Is(err, errNoAnswer) && used {
			v.leave()
			continue
		}
		if err == nil && string(body) != hundredBytes {
			err = fmt.Errorf("got %q", body)
		}
		if err != nil || !v.keep || v.client.closed {
			v.leave()
		}
		return err
	}
}

// connect makes a connection unless there is one. An address that refuses is the
// one from which the port moved away.
func (v *visitor) connect() error {
	if v.client != nil {
		return nil
	}
	var err error
	for _, address := range v.addresses {
		v.client, err = dial(target{address: address})
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
	}
	return err
}

func (v *visitor) leave() {
	if v.client != nil {
		v.client.close()
		v.client = nil
	}
}
