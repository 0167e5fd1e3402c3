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
	"headgate/internal/pair"
	"headgate/internal/upgrade"
)

// newRun returns the command that serves; open makes what it serves with.
func newRun(open opener) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "run",
		Short:      "Run the proxy",
		SuggestFor: []string{"serve", "start", "up", "daemon"},
		Long: `run runs the proxy until it is stopped. It watches the configuration file: when the file
changes, the new configuration is applied, or rejected as a whole with the position of each
problem while the active configuration stays in use. The configuration may be a directory:
then all its *.yaml files are read, in order of name.

If no configuration is given and none exists in the usual places, run creates an empty one
in the state directory, which you can edit in the console or through the API. While no user
exists, the log shows a link to create the first one. The link is valid for one day and one
use.

If the configuration is invalid at start, run serves the last confirmed configuration, and
the log and the status report "degraded" until the file is fixed. With --strict it does not
start instead.

With --store, machines share users, certificates and the configuration in a PostgreSQL
database. Each machine keeps a copy in its state directory, and serves from this copy when
the database is unavailable; changes are rejected until it is available again.

Two machines can also form a pair without a database: see headgate node. The second machine
follows the first, and serves everything from its own copy when the first is unavailable.

Signals: SIGHUP reloads the configuration; SIGTERM and SIGINT complete requests in progress
and stop (a second one stops at once); SIGUSR1 reopens log files; SIGUSR2 replaces the
process with one that runs the binary now on disk, as headgate upgrade does.`,
		Example: `  headgate run --config headgate.yaml
  headgate run -c /etc/headgate/headgate.yaml --state /var/lib/headgate --log-format json`,
		Args: noArguments,
	}
	file := addConfig(cmd)
	state := addState(cmd)
	strict := cmd.Flags().Bool("strict", false, "do not start with an invalid configuration, instead of serving the last confirmed one")
	address := cmd.Flags().String("admin-address", "", "`IP:PORT` of the admin listener, written to the configuration that is created if none exists")
	shared, node := addStore(cmd)
	follow := cmd.Flags().String("follow", "", "`URL` of the other machine of a pair, such as https://192.0.2.7:9080; by default the one in node.yaml of the state directory")
	logs := addLogs(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o := serverOptions{config: *file, state: *state, key: os.Getenv(keyVariable), store: *shared, node: nodeName(*node), follow: *follow, strict: *strict}
		if err := o.findFiles(*address); err != nil {
			return err
		}
		o.log = logs.open(cmd.ErrOrStderr())
		if o.created {
			o.log.Info("no configuration file was found; an empty one was created, which you can edit in the console or through the API", "file", o.config)
		}
		return serve(cmd.Context(), open, o)
	}
	return cmd
}

// findFiles completes the options of the command line: the state directory and the
// configuration, which it creates with an address of the admin listener if there is none.
func (o *serverOptions) findFiles(address string) (err error) {
	if err := checkAddress(address); err != nil {
		return err
	}
	if o.follow != "" {
		if o.follow, err = pair.CheckAddress(o.follow); err != nil {
			return usage("--follow: %v", err)
		}
	}
	if o.state, err = stateDir(o.state); err != nil {
		return err
	}
	if o.config, o.created, err = configToRun(o.config, o.state, address); err != nil {
		return err
	}
	o.config, err = filepath.Abs(o.config)
	return err
}

// acquireSockets reads what the process hands over that this one replaces, or the service
// manager.
func (o *serverOptions) acquireSockets() (err error) {
	if !upgrade.Pending() {
		o.activated = socketsPassed(o.log)
		return nil
	}
	if o.inherited, err = inherit(); err != nil {
		o.log.Error("cannot take over from the running process", "error", err)
		return &exitError{exitInvalid, nil}
	}
	o.log.Info("taking over from the running process", "pid", o.inherited.Old.PID, "version", o.inherited.Old.Version)
	return nil
}

// checkAddress refuses what is no address; "" is none.
func checkAddress(text string) error {
	if _, err := netip.ParseAddrPort(text); err != nil && text != "" {
		return usage("invalid address %q: expected an address like 0.0.0.0:9080", text)
	}
	return nil
}

// server is a running proxy.
type server interface {
	proxy
	// Upgrade replaces this process with one that runs the binary now on disk: see replacer.
	Upgrade(force bool) (upgrade.Result, error)
	// Run applies the configuration, calls the ready of its options and serves
	// until ctx ends and running requests have ended.
	Run(ctx context.Context) error
}

// serverOptions are the options of a server.
type serverOptions struct {
	log           *slog.Logger
	config, state string
	// created says that this start has created the configuration, as there was none.
	created bool
	// key is the key that secrets in the state directory are sealed with, "" for the
	// one in a file there.
	key string
	// store is the address of the store that several machines share, "" for none, and
	// node the name of this machine among them.
	store, node string
	// follow is the address of the other machine of a pair; "" is the one in its settings.
	follow string
	// strict refuses to start with a broken configuration.
	strict bool
	// inherited is what the process has handed over that this one replaces, nil for none.
	inherited *upgrade.Inheritance
	// activated are the sockets that the service manager has opened, nil for none.
	activated *activated
	// notify reports the state to the service manager.
	notify notifier
	// ready is called once, when the first configuration was applied.
	ready func()
	// changed is called with each change of the configuration, made or refused. It may
	// be nil.
	changed func()
}

// opener makes a server.
type opener func(serverOptions) (server, error)

// serve runs a server until a signal or the end of ctx stops it.
func serve(ctx context.Context, open opener, o serverOptions) error {
	log := o.log
	keepOnBrokenPipe()
	tuneMemory()
	b := thisBuild()
	log.Info("starting", "version", b.Version, "revision", b.Revision, "config", o.config, "state", o.state,
		"processors", runtime.GOMAXPROCS(0), "pid", os.Getpid())
	if err := o.acquireSockets(); err != nil {
		return err
	}
	notify := notifier{log}
	o.notify = notify
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
		o.inherited.Failed(err)
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
	s := &signals{log: log, proxy: h, notify: notify, stop: stop, exit: os.Exit, errors: os.Stderr, listening: func() { close(listening) },
		upgrade: func() {
			if _, err := h.Upgrade(false); err != nil {
				log.Error("no upgrade", "error", err)
			}
		}}
	beside.Go(func() { s.serve(all) })
	<-listening
	beside.Go(func() { notify.watch(all) })
	beside.Go(func() { tidyMemory(all, applied, changes.Load) })
	if err = h.Run(ctx); err != nil {
		o.inherited.Failed(err)
	}
	if refused := (*control.Refused)(nil); errors.As(err, &refused) {
		return &exitError{exitInvalid, nil} // the log has each problem
	}
	if err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}
