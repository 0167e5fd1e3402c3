//go:build linux

package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// pacedRate is a rate that requests are sent at, and what the harness itself adds to
// their latency.
type pacedRate struct {
	protocol string
	rate     float64 // requests a second
	floor    float64 // p99 latency at that rate without a proxy, in µs
}

// runIn is for how long requests are sent before latencies are noted. New connections,
// and what a proxy sets up for them, are measured by other rows; in a short run they would be
// more than the hundredth that p99 looks at.
const runIn = time.Second

// paced is a setup whose upstream is the loop.
func paced() []setup { return []setup{{paced: true}} }

// pacedTLS is paced with TLS.
func pacedTLS() []setup { return []setup{{paced: true, tls: true}} }

// measureLatency sends at a constant rate, whatever the answers do, and takes
// each latency from the moment the request was due: a peer that stalls is charged
// for every request that had to wait.
func measureLatency(b *bench, all []*running) (sample, error) {
	r, err := b.pacedRate("HTTP/1.1", row{name: "peak"}, func(peak *running) (float64, error) {
		result, err := b.wrk(peak, b.options.seconds, "-c64")
		return result.rate, err
	})
	if err != nil {
		return sample{}, err
	}
	v, err := b.p99(r.rate, latencyConnections, overH1(all[0].setup.address))
	return sample{value: v}, err
}

// measureLatencyH2 is measureLatency over HTTP/2.
func measureLatencyH2(b *bench, all []*running) (sample, error) {
	r, err := b.pacedRate("HTTP/2", row{name: "peakh2", setups: overTLS}, func(peak *running) (float64, error) {
		result, err := b.h2load(peak, "/", "-c8", "-m16", "-D"+strconv.Itoa(b.options.seconds))
		return float64(result.done) / b.duration.Seconds(), err
	})
	if err != nil {
		return sample{}, err
	}
	s := &all[0].setup
	v, err := b.p99(r.rate, latencyH2Connections, overH2(s.target(h2, nil), s.host(0)))
	return sample{value: v}, err
}

// p99 returns the latency that 99 % of the requests stayed within, in
// microseconds.
func (b *bench) p99(rate float64, conns int, open func(*pacer, int) (pacedConn, error)) (float64, error) {
	latencies, err := b.loop.constantRate(pace{rate: rate, runIn: runIn, duration: b.duration, conns: conns}, open)
	if err != nil {
		return 0, err
	}
	slices.Sort(latencies)
	return float64(quantile(latencies, 0.99).Nanoseconds()) / 1e3, nil
}

// pacedRate returns half of nginx's peak rate in a protocol, or of the first peer's where
// nginx is not here. When it is first asked for, it also finds what the latency is at
// that rate without any proxy: the part of every number that is none of the proxy's.
func (b *bench) pacedRate(protocol string, with row, peak func(*running) (float64, error)) (*pacedRate, error) {
	for i := range b.rates {
		if b.rates[i].protocol == protocol {
			return &b.rates[i], nil
		}
	}
	p := b.peers[0]
	for _, other := range b.peers {
		if other.name == "nginx" {
			p = other
		}
	}
	all, err := b.startAll(with, p, 0)
	if err != nil {
		return nil, err
	}
	most, err := peak(all[0])
	stopAll(all)
	if err != nil {
		return nil, err
	}
	r := pacedRate{protocol: protocol, rate: most / 2}
	if r.floor, err = b.p99(r.rate, latencyConnections, overH1(b.loop.address)); err != nil {
		return nil, err
	}
	fmt.Printf("  %s: %.0f requests a second, half of %s's peak; without a proxy %s µs\n", protocol, r.rate, p.name, short(r.floor))
	b.rates = append(b.rates, r)
	return &b.rates[len(b.rates)-1], nil
}
