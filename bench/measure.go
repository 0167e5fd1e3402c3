//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// warmSeconds is how long a peer gets plain load before it is measured.
const warmSeconds = 1

// wrk runs wrk with one thread against a peer and fails when any request did.
func (b *bench) wrk(r *running, seconds int, args ...string) (wrkResult, error) {
	args = append([]string{"-t1", "-d" + strconv.Itoa(seconds) + "s"}, args...)
	if !strings.Contains(strings.Join(args, " "), "Host: ") {
		args = append(args, "-H", "Host: "+r.setup.host(0))
	}
	args = append(args, r.setup.scheme()+"://"+r.setup.address+"/")
	out, err := exec.CommandContext(b.ctx, "wrk", args...).CombinedOutput()
	if err != nil {
		return wrkResult{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	result, err := parseWrk(string(out))
	if err != nil {
		return wrkResult{}, err
	}
	if result.failed > 0 {
		return wrkResult{}, fmt.Errorf("%d requests failed:\n%s%s", result.failed, out, r.process.lastLines())
	}
	return result, nil
}

// cpuPer returns the CPU time of the peer during some work, for each piece of it:
// work returns how many it did.
func (r *running) cpuPer(unit time.Duration, work func() (int, error)) (float64, error) {
	before, err := r.process.cpu()
	if err != nil {
		return 0, err
	}
	n, err := work()
	if err != nil {
		return 0, err
	}
	after, err := r.process.cpu()
	return float64(after-before) / float64(unit) / float64(n), err
}

// cpuOfRequests returns the CPU time of the peer for each request of a run of
// wrk, in microseconds.
func (b *bench) cpuOfRequests(r *running, args ...string) (float64, error) {
	return r.cpuPer(time.Microsecond, func() (int, error) {
		result, err := b.wrk(r, b.options.seconds, args...)
		return result.requests, err
	})
}

func measureRequests(b *bench, all []*running) (sample, error) {
	v, err := b.cpuOfRequests(all[0], "-c64")
	return sample{value: v}, err
}

func measureNewConnections(b *bench, all []*running) (sample, error) {
	v, err := b.cpuOfRequests(all[0], "-c64", "-H", "Connection: close")
	return sample{value: v}, err
}

// measureMany compares all[1], with many proxies, to all[0], with one, under the
// same load but for the hosts.
func measureMany(b *bench, all []*running) (sample, error) {
	var cpu [2]float64
	for i, r := range all {
		name := "wrk.lua"
		if err := writeFile(r.setup.dir, name, wrkScript(r.setup.proxies)); err != nil {
			return sample{}, err
		}
		var err error
		cpu[i], err = b.cpuOfRequests(r, "-c64", "-s", filepath.Join(r.setup.dir, name))
		if err != nil {
			return sample{}, err
		}
	}
	return sample{value: cpu[1] / cpu[0]}, nil
}

// fewestBodies is how many large bodies are measured at least.
const fewestBodies = 3

// measureBodies downloads the large body on one connection, over and over.
func measureBodies(b *bench, all []*running) (sample, error) {
	r := all[0]
	conn, err := net.Dial("tcp", r.setup.address)
	if err != nil {
		return sample{}, err
	}
	defer conn.Close()
	buf := make([]byte, 1<<20)
	request := get("/body", r.setup.host(0))
	if err := download(conn, request, buf); err != nil {
		return sample{}, err
	}
	v, err := r.cpuPer(time.Millisecond, func() (n int, err error) {
		for began := time.Now(); time.Since(began) < b.duration || n < fewestBodies; n++ {
			if err := download(conn, request, buf); err != nil {
				return n, err
			}
		}
		return n, nil
	})
	return sample{value: v}, err
}

// download asks for the large body and throws it away.
func download(conn net.Conn, request, buf []byte) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := conn.Write(request); err != nil {
		return err
	}
	have := 0
	for {
		n, err := conn.Read(buf[have:])
		have += n
		if h, ok := parseHead(buf[:have]); ok {
			if h.status != "200" || h.length != bodySize {
				return fmt.Errorf("download: status %s, %d bytes", h.status, h.length)
			}
			return discard(conn, buf, h.size+h.length-have)
		}
		if err != nil {
			return fmt.Errorf("download: after %d bytes: %w", have, err)
		}
	}
}

func discard(r io.Reader, buf []byte, left int) error {
	for left > 0 {
		n, err := r.Read(buf[:min(left, len(buf))])
		left -= n
		if err != nil && left > 0 {
			return fmt.Errorf("download: %d bytes missing: %w", left, err)
		}
	}
	return nil
}

// measureIdle opens connections, asks once on each, and sees by how much the
// peer grew.
func measureIdle(b *bench, all []*running) (sample, error) {
	return b.growth(all[0], b.idler(all[0]))
}

// idler opens a connection of HTTP/1.1 and asks once on it.
func (b *bench) idler(r *running) func() (io.Closer, error) {
	to, request := r.setup.target(h1, nil), get("/", r.setup.host(0))
	return func() (io.Closer, error) {
		c, err := dial(to)
		if err != nil {
			return nil, err
		}
		_, err = c.do(request)
		return c.conn, err
	}
}

// How long a peer has after its start to give back what only that needed, and how many
// connections come and go then, so that what these need is there before it is looked at.
const (
	restTime        = 3 * time.Second
	restConnections = 200
)

// measureMemory sees how much memory a peer holds that has started and rested.
func measureMemory(b *bench, all []*running) (sample, error) {
	select {
	case <-time.After(restTime + time.Duration(b.options.settle)*time.Second):
	case <-b.ctx.Done():
	}
	n, err := all[0].process.memory()
	return sample{value: float64(n) / (1 << 20)}, err
}

// rest waits until a peer that has just started is what it will be without connections.
func (b *bench) rest(open func() (io.Closer, error)) error {
	select {
	case <-time.After(restTime):
	case <-b.ctx.Done():
	}
	for range restConnections {
		c, err := open()
		if c != nil {
			_ = c.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// measureRest sees how much CPU time a peer takes while connections are open on which
// nothing moves.
func measureRest(b *bench, all []*running) (sample, error) {
	return b.atRest(all[0], func(d time.Duration) (float64, error) {
		v, err := all[0].cpuPer(time.Microsecond, func() (int, error) { return 1, b.sleep(d) })
		return v / d.Seconds(), err
	})
}

// measureRestWakes sees how often a peer wakes up then.
func measureRestWakes(b *bench, all []*running) (sample, error) {
	return b.atRest(all[0], func(d time.Duration) (float64, error) {
		before := all[0].process.wakes()
		err := b.sleep(d)
		return float64(all[0].process.wakes()-before) / d.Seconds(), err
	})
}

// atRest opens idle connections, and measures for twice the usual time when what that needed
// is over.
func (b *bench) atRest(r *running, measure func(time.Duration) (float64, error)) (sample, error) {
	var v float64
	_, err := b.growthThen(r, b.idler(r), func() (err error) {
		v, err = measure(2 * b.duration)
		return err
	})
	return sample{value: v}, err
}

// sleep waits.
func (b *bench) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// growth returns by how many KiB the peer grew for each idle connection: open
// opens one and asks once on it.
func (b *bench) growth(r *running, open func() (io.Closer, error)) (sample, error) {
	return b.growthThen(r, open, func() error { return nil })
}

// growthThen is growth that calls then before the connections are closed.
func (b *bench) growthThen(r *running, open func() (io.Closer, error), then func() error) (sample, error) {
	if err := b.rest(open); err != nil {
		return sample{}, err
	}
	before, err := r.process.memory()
	if err != nil {
		return sample{}, err
	}
	var conns []io.Closer
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range b.options.connections {
		c, err := open()
		if c != nil {
			conns = append(conns, c)
		}
		if err != nil {
			return sample{}, fmt.Errorf("connection %d: %w", len(conns), err)
		}
	}
	select {
	case <-time.After(time.Duration(b.options.settle) * time.Second):
	case <-b.ctx.Done():
	}
	after, err := r.process.memory()
	if err != nil {
		return sample{}, err
	}
	return sample{value: float64(after-before) / 1024 / float64(len(conns))}, then()
}
