package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"headgate/cmd/headgate/demo"
)

// newRespond returns the command that serves in place of an upstream.
func newRespond() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "respond",
		Short: "Run a test server that responds to every request",
		Long: `respond runs a server for testing a configuration. It responds to every request with the
request that it received, or with the given status and body. Each of several addresses is a
server of its own that reports its address, so that you can see how load is balanced.`,
		Example: `  headgate respond
  headgate respond --address 127.0.0.1:3000 --address 127.0.0.1:3001
  headgate respond --status 503 --body 'closed' --header 'Retry-After: 60'`,
		Args: noArguments,
	}
	addresses := cmd.Flags().StringSlice("address", []string{"127.0.0.1:3000"}, "`IP:PORT` to listen on; may be given several times, at most 64")
	status := cmd.Flags().Int("status", http.StatusOK, "`STATUS` of every response, 200 to 599")
	body := cmd.Flags().String("body", "", "`TEXT` of every response; the received request if it is empty")
	fields := cmd.Flags().StringArray("header", nil, "`'NAME: VALUE'` to add to every response; may be given several times")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		header, err := headerOf(*fields)
		if err != nil {
			return err
		}
		if *status < 200 || *status > 599 {
			return usage("invalid status %d: expected 200 to 599", *status)
		}
		return respond(cmd, *addresses, demo.Answer{Status: *status, Body: *body, Header: header})
	}
	return cmd
}

// headerOf reads fields as curl takes them.
func headerOf(fields []string) (http.Header, error) {
	header := http.Header{}
	for _, f := range fields {
		name, value, ok := strings.Cut(f, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(f, "\r\n\x00") {
			return nil, usage("invalid header %q: expected a header like 'Cache-Control: no-store'", f)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return header, nil
}

// maxResponders bounds the servers of one command.
const maxResponders = 64

// respond serves on all addresses until the command is stopped. None is served
// unless all can be.
func respond(cmd *cobra.Command, addresses []string, a demo.Answer) error {
	if len(addresses) > maxResponders {
		return usage("%d addresses: expected at most %d", len(addresses), maxResponders)
	}
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for _, text := range addresses {
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			return usage("invalid address %q: expected an address like 127.0.0.1:3000", text)
		}
		l, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", at.String())
		if err != nil {
			if op := (*net.OpError)(nil); errors.As(err, &op) {
				err = op.Err // without the address once more
			}
			return fmt.Errorf("open %s: %w; choose another with --address", at, err)
		}
		listeners = append(listeners, l)
	}
	return serveAll(cmd, listeners, a)
}

// serveAll serves until the context ends or one server fails.
func serveAll(cmd *cobra.Command, listeners []net.Listener, a demo.Answer) error {
	stopped, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancelCause(stopped)
	defer cancel(nil)
	var all sync.WaitGroup
	defer all.Wait()
	for _, l := range listeners {
		a.Name = "server " + l.Addr().String()
		s := &http.Server{Handler: demo.Respond(a), ReadHeaderTimeout: upstreamTimeout, IdleTimeout: 2 * upstreamTimeout,
			MaxHeaderBytes: 64 << 10}
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
		fmt.Fprintf(cmd.OutOrStdout(), "responding to every request on http://%s\n", l.Addr())
		all.Go(func() {
			if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				cancel(fmt.Errorf("serve %s: %w", l.Addr(), err))
			}
		})
		defer shut(s)
	}
	fmt.Fprintln(cmd.OutOrStdout(), "Press Ctrl-C to stop.")
	<-ctx.Done()
	if stopped.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// shut ends a server, and gives requests that are under way a second.
func shut(s *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		s.Close()
	}
}
