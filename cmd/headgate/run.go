package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"headgate/internal/control"
)

// newRun returns the command that serves; open makes what it serves with.
func newRun(open opener) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "run",
		Short:      "Run the proxy",
		SuggestFor: []string{"serve", "start", "up", "daemon"},
		Long: `run serves until it is stopped. It watches the configuration file: a change of the
file applies at once, or is refused whole, with the place of each mistake, and
everything goes on as it was. The configuration may be a folder: then all its *.yaml
files are read, in order of name.

Without a configuration, none named and none in the usual places, it makes an empty one
in the state directory, and everything is set up in the console or through the API. While
there is no user the log has a link for making the first one: it is valid for one day
and one use.

A configuration that is broken at the start leaves the newest one to be served that was
confirmed; the log and the status say "degraded" until the file is right. --strict
refuses to start instead.

Signals: SIGHUP reads the configuration again, SIGTERM and SIGINT let running
requests end and stop (a second one stops at once), SIGUSR1 opens log files again.`,
		Example: `  headgate run --config headgate.yaml
  headgate run -c /etc/headgate/headgate.yaml --state /var/lib/headgate --log-format json`,
		Args: noArguments,
	}
	file := addConfig(cmd)
	state := addState(cmd)
	strict := cmd.Flags().Bool("strict", false, "refuse to start with a broken configuration, instead of serving the newest confirmed one")
	address := cmd.Flags().String("admin-address", "", "`IP:PORT` of the admin listener, written into the configuration that is made where there is none")
	logs := addLogs(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkAddress(*address); err != nil {
			return err
		}
		dir, err := stateDir(*state)
		if err != nil {
			return err
		}
		name, made, err := configToRun(*file, dir, *address)
		if err != nil {
			return err
		}
		if name, err = filepath.Abs(name); err != nil {
			return err
		}
		log := logs.open(cmd.ErrOrStderr())
		if made {
			log.Info("no configuration file was found; an empty one was made, to be filled by the console or the API", "file", name)
		}
		return serve(cmd.Context(), open, houseOptions{log: log, config: name, state: dir, key: os.Getenv(keyVariable), strict: *strict})
	}
	return cmd
}

// checkAddress refuses what is no address; "" is none.
func checkAddress(text string) error {
	if _, err := netip.ParseAddrPort(text); err != nil && text != "" {
		return usage("invalid address %q, want one like 0.0.0.0:9080", text)
	}
	return nil
}

// house is a proxy that serves.
type house interface {
	proxy
	// Run applies the configuration, calls the ready of its options and serves
	// until ctx ends and running requests have ended.
	Run(ctx context.Context) error
}

// houseOptions is what a house is made of.
type houseOptions struct {
	log           *slog.Logger
	config, state string
	// key is the key that secrets in the state directory are sealed with, "" for the
	// one in a file there.
	key string
	// strict refuses to start with a broken configuration.
	strict bool
	// ready is called once, when the first configuration was applied.
	ready func()
	// changed is called with each change of the configuration, made or refused. It may
	// be nil.
	changed func()
}

// opener makes a house.
type opener func(houseOptions) (house, error)

// serve runs a house until a signal or the end of ctx stops it.
func serve(ctx context.Context, open opener, o houseOptions) error {
	log := o.log
	keepOnBrokenPipe()
	tuneMemory()
	b := thisBuild()
	log.Info("starting", "version", b.Version, "revision", b.Revision, "config", o.config, "state", o.state,
		"processors", runtime.GOMAXPROCS(0), "pid", os.Getpid())
	notify := notifier{log}
	ready, applied := o.ready, make(chan struct{})
	o.ready = func() {
		close(applied)
		notify.ready()
		if ready != nil {
			ready()
		}
	}
	var changes atomic.Uint64
	o.changed = func() { changes.Add(1) }
	h, err := open(o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	defer beside.Wait()
	// Signals and the watchdog outlive ctx: they are served while draining.
	all, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	listening := make(chan struct{})
	s := &signals{log: log, proxy: h, notify: notify, stop: stop, exit: os.Exit, errors: os.Stderr, listening: func() { close(listening) }}
	beside.Go(func() { s.serve(all) })
	<-listening
	beside.Go(func() { notify.watch(all) })
	beside.Go(func() { tidyMemory(all, applied, changes.Load) })
	err = h.Run(ctx)
	if refused := (*control.Refused)(nil); errors.As(err, &refused) {
		return &exitError{exitInvalid, nil} // the log has told each problem
	}
	if err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}
