package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case pinWord:
			fail(pinAndExec(os.Args[2:]))
		case reverseProxyWord:
			fail(serveReverseProxy(os.Args[2:]))
		case grpcWord:
			fail(serveGRPC(os.Args[2:]))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	fail(err)
}

// fail ends the program, as failed when there is an error.
func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options are what the command line says.
type options struct {
	rows, peers string
	programs    programs
	out         string
	features    bool
	steady      bool
	rounds      int
	seconds     int
	connections int
	settle      int

	proxyCPU, loadCPU, upstreamCPU int
}

func parseOptions() options {
	var o options
	last := runtime.NumCPU() - 1
	flag.StringVar(&o.rows, "rows", "", "`names` of the rows to measure, with commas between; empty means all")
	flag.BoolVar(&o.features, "features", false, "measure what each feature adds to a request, and nothing else")
	flag.BoolVar(&o.steady, "steady", false, "measure at constant rates, and nothing else; -rows then is `text` that a line contains")
	flag.StringVar(&o.peers, "peers", "headgate,nginx,haproxy,net/http", "`names` of the proxies to measure, with commas between")
	flag.StringVar(&o.programs.headgate, "headgate", "bin/headgate", "`path` of headgate")
	flag.StringVar(&o.programs.before, "before", "", "`path` of another headgate, to compare with: the peer before")
	flag.StringVar(&o.programs.nginx, "nginx", "nginx", "`path` of the nginx to measure; where it needs a module for TCP, that is in ../modules")
	flag.StringVar(&o.programs.haproxy, "haproxy", "haproxy", "`path` of the HAProxy to measure")
	flag.StringVar(&o.out, "out", "", "`page` into which the table is written; empty means print only")
	flag.IntVar(&o.rounds, "rounds", 5, "how many `times` each measurement is repeated")
	flag.IntVar(&o.seconds, "seconds", 5, "length of one measurement, in `seconds`")
	flag.IntVar(&o.connections, "connections", 5000, "how `many` idle connections to open")
	flag.IntVar(&o.settle, "settle", 8, "how many `seconds` connections are idle before memory is looked at")
	flag.IntVar(&o.proxyCPU, "proxy-cpu", 0, "`number` of the proxy's core")
	flag.IntVar(&o.loadCPU, "load-cpu", min(1, last), "`number` of the load's core")
	flag.IntVar(&o.upstreamCPU, "upstream-cpu", min(2, last), "`number` of the upstream's core")
	flag.Usage = func() { usage(flag.CommandLine) }
	flag.Parse()
	return o
}

// usage tells of every flag and of every row.
func usage(flags *flag.FlagSet) {
	out := flags.Output()
	fmt.Fprintf(out, "bench measures headgate side by side with its peers.\n\nFlags:\n")
	flags.PrintDefaults()
	fmt.Fprintf(out, "\nRows:\n")
	for _, r := range allRows() {
		fmt.Fprintf(out, "  %-10s %s, %s\n", r.name, r.title, r.unit)
	}
}

func run(ctx context.Context) error {
	o := parseOptions()
	if o.features {
		return runFeatures(ctx, o)
	}
	var rows []row
	var err error
	if !o.steady {
		rows, err = chooseRows(o.rows)
	}
	if err != nil {
		return err
	}
	if err := findPrograms(rows); err != nil {
		return err
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	if err := pinSelf(o.loadCPU); err != nil {
		return err
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()

	if o.steady {
		return writeSteady(b, o)
	}
	var results []result
	var failed []error
	for _, r := range rows {
		res := b.row(r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		results = append(results, res)
		failed = slices.AppendSeq(failed, maps.Values(res.failed))
	}
	t := table{facts: facts(b), peers: b.peerNames(), results: results, rounds: o.rounds, seconds: o.seconds}
	fmt.Printf("\n%s\n", t.markdown())
	if o.out != "" {
		failed = append(failed, writePage(o.out, beginMark, t.markdown(), endMark))
	}
	return errors.Join(failed...)
}

// writeSteady measures at constant rates.
func writeSteady(b *bench, o options) error {
	text, err := b.runSteady(o.rows)
	fmt.Printf("\n%s\n", text)
	if o.out == "" {
		return err
	}
	return errors.Join(err, writePage(o.out, beginSteady, text, endSteady))
}

// runFeatures measures what each feature adds to a request.
func runFeatures(ctx context.Context, o options) error {
	if err := pinSelf(o.proxyCPU); err != nil {
		return err
	}
	text, err := measureFeatures(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\n", text)
	if o.out == "" {
		return nil
	}
	return writePage(o.out, beginFeatures, text, endFeatures)
}

// bench is what all measurements share.
type bench struct {
	ctx      context.Context
	options  options
	dir      string
	peers    []peer
	upstream *upstream
	echo     *echoServer
	duration time.Duration

	certificate *certificate // what the peers show in rows with TLS
	loop        *loop        // client and upstream of the rows of latency
	rates       []pacedRate  // those that were found
}

// findPrograms reports a program that makes the load and is not here, before
// anything is measured.
func findPrograms(rows []row) error {
	if _, err := lookPath("wrk"); err != nil {
		return err
	}
	for _, r := range rows {
		if r.needs == "" {
			continue
		}
		if _, err := lookPath(r.needs); err != nil {
			return fmt.Errorf("row %s: %w", r.name, err)
		}
	}
	return nil
}

// newBench finds the peers that are here and starts the upstream.
func newBench(ctx context.Context, o options) (*bench, error) {
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{ctx: ctx, options: o, dir: dir, duration: time.Duration(o.seconds) * time.Second}
	b.peers, err = choosePeers(o)
	if err == nil {
		b.certificate, err = makeCertificate(dir)
	}
	if err == nil {
		b.echo, err = startEcho()
	}
	if err == nil {
		b.upstream, err = startUpstream(b)
	}
	if err == nil {
		if b.loop, err = startLoop(); err != nil {
			b.upstream.process.stop()
		}
	}
	if err == nil {
		if b.upstream.calls, b.upstream.grpc, err = startGRPC(b); err != nil {
			b.upstream.process.stop()
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return b, nil
}

func (b *bench) close() {
	b.loop.stop()
	b.upstream.process.stop()
	b.echo.listener.Close()
	b.upstream.calls.stop()
	os.RemoveAll(b.dir)
}

// choosePeers returns the wanted peers. One that is not here is left out, and
// said.
func choosePeers(o options) ([]peer, error) {
	all := allPeers(o.programs)
	var chosen []peer
	for name := range strings.SplitSeq(o.peers, ",") {
		i := slices.IndexFunc(all, func(p peer) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no peer named %q", name)
		}
		if _, err := lookPath(all[i].program); err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", name, err)
			continue
		}
		all[i].quic = all[i].quicWord == "" || strings.Contains(saidWhole(all[i].program, all[i].about), all[i].quicWord)
		chosen = append(chosen, all[i])
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("none of %s is here", o.peers)
	}
	return chosen, nil
}

func (b *bench) peerNames() []string {
	var names []string
	for _, p := range b.peers {
		names = append(names, p.name)
	}
	return names
}

// lookPath finds a program, also where only root's path leads.
func lookPath(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return filepath.Abs(path)
	}
	return exec.LookPath(filepath.Join("/usr/sbin", program))
}
