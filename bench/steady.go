//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// steadyRates are the requests a second of an ordinary day: rates at which every proxy is
// mostly idle.
var steadyRates = []int{500, 4000, 12000}

// steady is one line of the table of constant rates.
type steady struct {
	protocol   string
	rate       int // requests a second
	processors int // of the proxy
}

// steadyFigures is what a line is measured by.
type steadyFigures struct {
	cpu      float64 // µs of CPU time a request
	p50, p99 float64 // µs from the moment at which a request was due
}

// steadySamples are the figures of all rounds.
type steadySamples struct{ cpu, p50, p99 []float64 }

// add appends the figures of one round.
func (f *steadySamples) add(s steadyFigures) {
	f.cpu, f.p50, f.p99 = append(f.cpu, s.cpu), append(f.p50, s.p50), append(f.p99, s.p99)
}

// The protocols of the lines.
const (
	steadyH1  = "HTTP/1.1"
	steadyTLS = "HTTP/1.1 over TLS"
	steadyH2  = "HTTP/2 over TLS"
	steadyH3  = "HTTP/3"
	// steadySite is the whole day of a small site: HTTP/2, access log, compression, cache, rate
	// limit and header rules; of ten requests three are for a page, three for a short answer and
	// four for a file that is kept.
	steadySite = "a small site over HTTP/2"
)

// siteRate is the rate of a small site, in requests a second.
const siteRate = 300

// sitePaths are the requests of a small site.
var sitePaths = []string{sitePage, siteFile, "/", siteFile, sitePage, siteFile, "/", siteFile, sitePage, "/"}

// steadyConnections carry the constant rate over HTTP/1.1.
const steadyConnections = 32

// steadyLines returns all lines that a list of rates and protocols selects.
func steadyLines(processors []int) []steady {
	var lines []steady
	for _, protocol := range []string{steadyH1, steadyTLS, steadyH2, steadyH3} {
		for _, rate := range steadyRates {
			for _, n := range processors {
				lines = append(lines, steady{protocol, rate, n})
			}
		}
	}
	for _, n := range processors {
		lines = append(lines, steady{steadySite, siteRate, n})
	}
	return lines
}

// String names a line as -rows selects it and the table shows it.
func (l steady) String() string {
	return fmt.Sprintf("%s, %d/s, %d processor%s", l.protocol, l.rate, l.processors, plural(l.processors))
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// row is what has to be started for the line.
func (l steady) row() row {
	s := setup{paced: l.protocol != steadyH3, processors: l.processors}
	s.tls = l.protocol != steadyH1
	s.quic = l.protocol == steadyH3
	r := row{name: "steady", setups: func() []setup { return []setup{s} }}
	if l.protocol == steadySite {
		s.accessLog, s.compress, s.cache, s.rules, s.limited = true, gzipCoding, true, true, true
		r.only = func(p peer) bool { return p.canChange && p.name != "haproxy" } // which has no such cache
	}
	if s.quic {
		r.only = speaksQUIC
	}
	return r
}

// runSteady measures all lines whose name contains what was asked for.
func (b *bench) runSteady(pattern string) (string, error) {
	processors := []int{1}
	if runtime.NumCPU() > 1 {
		processors = append(processors, 2)
	}
	var failed []error
	var table strings.Builder
	b.steadyHead(&table)
	for _, l := range steadyLines(processors) {
		if !strings.Contains(l.String(), pattern) || b.ctx.Err() != nil {
			continue
		}
		samples, errs := b.steadyLine(l)
		failed = append(failed, errs...)
		b.steadyCells(&table, l, samples)
	}
	return strings.TrimSuffix(table.String(), "\n"), errors.Join(failed...)
}

// steadyLine measures one line: all peers in turn, then all again.
func (b *bench) steadyLine(l steady) (map[string]*steadySamples, []error) {
	fmt.Println(l)
	r := l.row()
	samples, failed := map[string]*steadySamples{}, []error(nil)
	started := map[string]*running{}
	defer func() {
		for _, one := range started {
			one.process.stop()
		}
	}()
	for round := range b.options.rounds {
		for _, p := range b.turn(round) {
			if r.only != nil && !r.only(p) || b.ctx.Err() != nil {
				continue
			}
			figures, err := b.steadyOnce(l, r, p, started)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %s: %w", l, p.name, err))
				fmt.Printf("  %d %-9s failed: %v\n", round+1, p.name, err)
				continue
			}
			if samples[p.name] == nil {
				samples[p.name] = &steadySamples{}
			}
			samples[p.name].add(figures)
			fmt.Printf("  %d %-9s %s µs CPU, p50 %s µs, p99 %s µs\n", round+1, p.name, short(figures.cpu), short(figures.p50), short(figures.p99))
		}
	}
	return samples, failed
}

// steadyOnce measures a peer once.
func (b *bench) steadyOnce(l steady, r row, p peer, started map[string]*running) (steadyFigures, error) {
	one := started[p.name]
	if one == nil {
		all, err := b.startAll(r, p, 0)
		if err != nil {
			return steadyFigures{}, err
		}
		one = all[0]
		started[p.name] = one
	}
	var before, after time.Duration
	measured := func() (err error) { before, err = one.process.cpu(); return err }
	latencies, err := b.steadyLatencies(l, one, measured)
	if err != nil {
		return steadyFigures{}, err
	}
	if after, err = one.process.cpu(); err != nil {
		return steadyFigures{}, err
	}
	slices.Sort(latencies)
	micro := func(q float64) float64 { return float64(quantile(latencies, q).Nanoseconds()) / 1e3 }
	cpu := float64((after - before).Nanoseconds()) / 1e3 / float64(len(latencies))
	return steadyFigures{cpu: cpu, p50: micro(0.5), p99: micro(0.99)}, nil
}

// steadyLatencies sends at the line's rate, and calls measured when the run-in is over.
func (b *bench) steadyLatencies(l steady, r *running, measured func() error) ([]time.Duration, error) {
	s := &r.setup
	pace := pace{rate: float64(l.rate), runIn: runIn, duration: b.duration, measured: measured, sleeps: l.processors > 1}
	switch l.protocol {
	case steadyH3:
		return b.paceH3(r, pace)
	case steadyH2:
		pace.conns = latencyH2Connections
		return b.loop.constantRate(pace, overH2(s.target(h2, nil), s.host(0)))
	case steadySite:
		pace.conns = latencyH2Connections
		return b.loop.constantRate(pace, overH2(s.target(h2, nil), s.host(0), sitePaths...))
	case steadyTLS:
		pace.conns = steadyConnections
		return b.loop.constantRate(pace, overTLS1(s.target(h1, nil)))
	}
	pace.conns = steadyConnections
	return b.loop.constantRate(pace, overH1(s.address))
}

// paceH3 sends requests over HTTP/3 at a constant rate.
func (b *bench) paceH3(r *running, p pace) ([]time.Duration, error) {
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	request := h3Request(r.setup.host(0), "/")
	total, step := int(p.rate*(p.runIn+p.duration).Seconds()), time.Duration(float64(time.Second)/p.rate)
	latencies, errs := make([]time.Duration, total), make([]error, total)
	var all sync.WaitGroup
	conns, err := b.dialAllQUIC(ctx, r)
	if err != nil {
		return nil, err
	}
	first := int(p.runIn / step)
	began := time.Now()
	for i := range total {
		if wait := time.Until(began.Add(time.Duration(i) * step)); wait > 0 {
			time.Sleep(wait)
		}
		if i == first {
			if err := p.measured(); err != nil {
				return nil, err
			}
		}
		all.Go(func() {
			errs[i] = askH3(ctx, conns[i%len(conns)], request)
			latencies[i] = time.Since(began) - time.Duration(i)*step
		})
	}
	all.Wait()
	return latencies[first:], errors.Join(errs...)
}

// steadyHead writes the head of the table.
func (b *bench) steadyHead(out *strings.Builder) {
	for _, fact := range facts(b) {
		fmt.Fprintf(out, "- %s\n", fact)
	}
	fmt.Fprintf(out, "- Medians of %d rounds of %d s, in rotating order: µs of CPU time per request; p50; p99 in µs\n\n", b.options.rounds, b.options.seconds)
	heads := append([]string{"work"}, b.peerNames()...)
	for _, p := range b.peerNames() {
		if p != subject {
			heads = append(heads, "÷ "+p)
		}
	}
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
}

// steadyCells writes a line of the table.
func (b *bench) steadyCells(out *strings.Builder, l steady, samples map[string]*steadySamples) {
	cells := []string{l.String()}
	text := func(cpu, p50, p99 float64) string { return short(cpu) + "; " + short(p50) + "; " + short(p99) }
	for _, p := range b.peerNames() {
		if s := samples[p]; s != nil {
			cells = append(cells, text(median(s.cpu), median(s.p50), median(s.p99)))
			continue
		}
		cells = append(cells, "–")
	}
	mine := samples[subject]
	for _, p := range b.peerNames() {
		switch s := samples[p]; {
		case p == subject:
		case s == nil || mine == nil:
			cells = append(cells, "–")
		default:
			cells = append(cells, text(median(mine.cpu)/median(s.cpu), median(mine.p50)/median(s.p50), median(mine.p99)/median(s.p99)))
		}
	}
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}
