package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/cmd/headgate/demo"
)

// newDemo returns the command that shows headgate; open makes what it serves
// with.
func newDemo(open opener) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a demonstration",
		Long: `demo serves a small configuration on 127.0.0.1:8080 with a built-in upstream that echoes
each request, and prints commands to try. The configuration is a file that you can edit
while the demo runs.`,
		Example: `  headgate demo
  headgate demo --address 127.0.0.1:8181`,
		Args: noArguments,
	}
	address := cmd.Flags().String("address", "127.0.0.1:8080", "`IP:PORT` to listen on")
	admin := cmd.Flags().String("admin", adminAddress, "`IP:PORT` of the admin listener; empty to disable it")
	logs := addLogs(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		at, err := netip.ParseAddrPort(*address)
		if err != nil || at.Port() == 0 {
			return usage("invalid address %q: expected an address like 127.0.0.1:8080", *address)
		}
		if !cmd.Flags().Changed("admin") {
			*admin = firstFree(adminAddress)
		}
		return runDemo(cmd, open, demo.Places{Listen: at.String(), Admin: *admin}, logs)
	}
	return cmd
}

// runDemo serves the upstream and the demo's configuration, which is in a directory of its
// own, until it is stopped.
func runDemo(cmd *cobra.Command, open opener, places demo.Places, logs logFlags) error {
	if err := probe(places.Listen); err != nil {
		return fmt.Errorf("open %s: %w; choose another with --address", places.Listen, err)
	}
	log := logs.open(cmd.ErrOrStderr())
	behind, err := openUpstream(log)
	if err != nil {
		return err
	}
	defer behind.close()
	places.Upstream = behind.address
	dir, err := os.MkdirTemp("", "headgate-demo-")
	if err != nil {
		return fmt.Errorf("create a folder for the demo: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, configName)
	if err := os.WriteFile(file, demo.Config(places), 0o600); err != nil {
		return fmt.Errorf("write the demo's configuration: %w", err)
	}
	state := filepath.Join(dir, "state")
	return serve(cmd.Context(), open, serverOptions{
		log: log, config: file, state: state,
		ready: func() { greet(cmd, places, file, state) },
	})
}

// greet prints what to try. The link to the console creates its first user.
func greet(cmd *cobra.Command, places demo.Places, file, state string) {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "\nheadgate listens on http://%s and proxies to an upstream that echoes each request.\n\n", places.Listen)
	fmt.Fprint(out, demo.Hints(places))
	fmt.Fprintf(out, "\nEdit %s: a change applies at once.\n", file)
	if places.Admin != "" {
		link := "http://" + places.Admin + "/"
		if token, err := os.ReadFile(filepath.Join(state, setupFile)); err == nil {
			link += "setup#" + strings.TrimSpace(string(token))
		}
		fmt.Fprintf(out, "Open the console and create the first user:\n  %s\n", link)
	}
	fmt.Fprint(out, "Press Ctrl-C to stop. Access log:\n\n")
}

// upstreamTimeout bounds how long a client of the demo's upstream may take.
const upstreamTimeout = time.Minute

// upstream is the demo's upstream while it is served.
type upstream struct {
	address string
	server  *http.Server
	done    chan struct{}
}

// openUpstream serves the demo's upstream on a loopback port.
func openUpstream(log *slog.Logger) (*upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the demo's upstream: %w", err)
	}
	u := &upstream{
		address: l.Addr().String(),
		server: &http.Server{
			Handler:           demo.Upstream("the demo upstream"),
			ReadHeaderTimeout: upstreamTimeout,
			IdleTimeout:       2 * upstreamTimeout,
		},
		done: make(chan struct{}),
	}
	go func() {
		defer close(u.done)
		if err := u.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("demo upstream stopped", "error", err)
		}
	}()
	return u, nil
}

// close stops serving.
func (u *upstream) close() {
	u.server.Close()
	<-u.done
}

// firstFree returns the address, or one with the next free port, or "" if the ten after it
// are busy too.
func firstFree(address string) string {
	at := netip.MustParseAddrPort(address)
	for port := at.Port(); port <= at.Port()+10; port++ {
		if next := netip.AddrPortFrom(at.Addr(), port).String(); probe(next) == nil {
			return next
		}
	}
	return ""
}

// probe returns the error of listening on an address, nil if it is free.
func probe(address string) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}
