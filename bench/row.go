//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// sample is one measurement.
type sample struct {
	value float64
	of    int // for counts: of how many; else 0
}

// row is one line of the table: some work, and how it is measured.
type row struct {
	name  string
	title string
	unit  string
	goals []goal
	// only leaves out peers that cannot do it; nil means all can.
	only func(peer) bool
	// setups returns what is started of each peer; nil means one plain setup.
	setups func() []setup
	// needs is the program that makes the load beside wrk; empty means none.
	needs string
	// fresh starts the peer anew for each measurement.
	fresh bool
	// cold leaves out the plain load before it is measured.
	cold bool
	// measure measures once.
	measure func(*bench, []*running) (sample, error)
}

// goal is how good headgate is to be in a row: at most this much times the peer,
// or at most this much in the row's unit when there is no peer.
type goal struct {
	peer string
	most float64
}

func rowNames() []string {
	var names []string
	for _, r := range allRows() {
		names = append(names, r.name)
	}
	return names
}

// chooseRows returns the rows of a list with commas, or all.
func chooseRows(list string) ([]row, error) {
	if list == "" {
		return allRows(), nil
	}
	var chosen []row
next:
	for name := range strings.SplitSeq(list, ",") {
		for _, r := range allRows() {
			if r.name == name {
				chosen = append(chosen, r)
				continue next
			}
		}
		return nil, fmt.Errorf("no row named %q; there are %s", name, strings.Join(rowNames(), ", "))
	}
	return chosen, nil
}

// result is what was measured of a row, by peer.
type result struct {
	row     row
	samples map[string][]sample
	failed  map[string]error // peers that did not do the work
}

// turn returns the order in which a round measures the peers. Each round begins with a
// different one, because the first of a round is a little slower.
func (b *bench) turn(round int) []peer {
	first := round % len(b.peers)
	return slices.Concat(b.peers[first:], b.peers[:first])
}

// row measures one row: all peers in turn, then all again. A peer that fails is left out
// from then on.
func (b *bench) row(r row) result {
	res := result{row: r, samples: map[string][]sample{}, failed: map[string]error{}}
	started := map[string][]*running{}
	defer func() {
		for _, all := range started {
			stopAll(all)
		}
	}()
	fmt.Printf("%s: %s, %s\n", r.name, r.title, r.unit)
	for round := range b.options.rounds {
		for _, p := range b.turn(round) {
			if res.failed[p.name] != nil || b.ctx.Err() != nil || r.only != nil && !r.only(p) {
				continue
			}
			s, err := b.sample(r, p, round, started)
			if err != nil {
				res.failed[p.name] = fmt.Errorf("row %s: %s: %w", r.name, p.name, err)
				fmt.Printf("  %d %-9s failed: %v\n", round+1, p.name, err)
				continue
			}
			res.samples[p.name] = append(res.samples[p.name], s)
			fmt.Printf("  %d %-9s %s\n", round+1, p.name, s)
		}
	}
	return res
}

// sample measures a peer once. It starts what it needs of it, and keeps it for the next
// round, if it may.
func (b *bench) sample(r row, p peer, round int, started map[string][]*running) (sample, error) {
	if started[p.name] == nil {
		all, err := b.startAll(r, p, round)
		if err != nil {
			return sample{}, err
		}
		started[p.name] = all
	}
	s, err := r.measure(b, started[p.name])
	if r.fresh || err != nil {
		stopAll(started[p.name])
		delete(started, p.name)
	}
	return s, err
}

// startAll starts what a row needs of a peer, and warms it.
func (b *bench) startAll(r row, p peer, round int) ([]*running, error) {
	setups := []setup{{}}
	if r.setups != nil {
		setups = r.setups()
	}
	addresses, err := freeAddresses(2 * len(setups))
	if err != nil {
		return nil, err
	}
	var all []*running
	for i, s := range setups {
		s.dir, err = makeDir(b.dir, fmt.Sprintf("%s-%d-%d", r.name, round, i))
		if err != nil {
			break
		}
		s.address = addresses[2*i]
		if s.moving != "" {
			s.moving = addresses[2*i+1]
		}
		s.upstreams = b.upstream.addresses[:1]
		if s.paced {
			s.upstreams = []string{b.loop.address}
		}
		s.certificate, s.echo = b.certificate, b.echo.address
		if s.secure != "" {
			s.secure = b.upstream.secure
		}
		if s.grpc != "" {
			s.grpc = b.upstream.grpc
		}
		var one *running
		if one, err = b.start(p, s); err != nil {
			break
		}
		all = append(all, one)
		if r.cold {
			continue
		}
		if _, err = b.wrk(one, warmSeconds, "-c16"); err != nil {
			break
		}
	}
	if err != nil {
		stopAll(all)
		return nil, err
	}
	return all, nil
}

func stopAll(all []*running) {
	for _, r := range all {
		r.process.stop()
	}
}

// String writes a sample as it stands in the table.
func (s sample) String() string {
	if s.of > 0 {
		return fmt.Sprintf("%.0f of %d", s.value, s.of)
	}
	return short(s.value)
}
