//go:build linux

// Command management measures what the management API costs those whose requests are
// served: clients of its streams, edits at a steady rate, people who guess passwords, the
// ring of recent requests, and an edit among ten thousand proxies. It says nothing about
// what is good: it prints numbers, with the load of the machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

var (
	binary  = flag.String("headgate", "bin/headgate", "the `FILE` of headgate")
	only    = flag.String("only", "", "the parts that are measured, with commas between them; without it all")
	length  = flag.Duration("length", 10*time.Second, "how long a phase lasts; edits last six times as long")
	rounds  = flag.Int("rounds", 5, "how often a part is repeated; medians are told")
	target  = flag.String("guess", "", "guess passwords at an `ADDRESS`, and measure nothing")
	spread  = flag.Bool("many", false, "guess from many addresses")
	changes = flag.Int("edits", 21, "how many proxies the part many edits")
	rate    = flag.Int("rate", 1000, "requests a second that the proxy gets meanwhile")
)

var parts = []struct {
	name string
	run  func(ctx context.Context) error
}{
	{"streams", streams},
	{"edits", edits},
	{"passwords", passwords},
	{"ring", ring},
	{"many", many},
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *target != "" {
		if err := guessAll(ctx, *target, *spread); err != nil {
			fmt.Fprintln(os.Stderr, "management:", err)
			os.Exit(1)
		}
		return
	}
	for _, p := range parts {
		if *only != "" && !strings.Contains(","+*only+",", ","+p.name+",") {
			continue
		}
		fmt.Printf("%s (load of the machine: %s)\n", p.name, loadOfMachine())
		if err := p.run(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "management: %s: %v\n", p.name, err)
			os.Exit(1)
		}
	}
}
