package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"headgate/internal/admin/api"
	"headgate/internal/event"
	"headgate/internal/operator"
	"headgate/internal/store/local"
)

// keyVariable holds the key that secrets in the state directory are sealed with.
const keyVariable = "HEADGATE_STATE_KEY"

// openOrServe returns the headgate that runs, else one that this process is itself: the
// API over the state directory, for what needs no traffic.
func (r *reach) openOrServe(ctx context.Context) (*remote, error) {
	to, err := r.open(ctx)
	var stranger *unproven
	if err == nil || *r.admin != "" || errors.As(err, &stranger) {
		return to, err // the other process may be in front of a headgate with another state directory
	}
	dir, failed := stateDir(*r.state)
	if failed != nil {
		return nil, failed
	}
	embedded, failed := serveState(ctx, dir, slog.New(slog.NewTextHandler(r.cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	if inUse := (*local.InUse)(nil); errors.As(failed, &inUse) {
		return nil, fmt.Errorf("another headgate uses %s and cannot be reached: %w", dir, err)
	}
	return embedded, failed
}

// serveState opens a state directory that no process uses, and returns the API over it.
func serveState(ctx context.Context, dir string, log *slog.Logger) (*remote, error) {
	back, err := actAsOwner(dir)
	if err != nil {
		return nil, err
	}
	state, err := local.Open(local.Options{Dir: dir, Log: log, Key: os.Getenv(keyVariable)})
	if err != nil {
		back()
		return nil, err
	}
	events, err := event.Open(ctx, state, log)
	if err != nil {
		state.Close()
		back()
		return nil, err
	}
	handler := api.New(api.Options{
		Operators: operator.New(operator.Options{Store: state, Events: events, Log: log, SetupFile: filepath.Join(dir, setupFile)}),
		Events:    events, Log: log,
		Version: api.Version{Version: thisBuild().Version, Go: runtime.Version(), API: "v1"},
		Backup:  state.Backup, Store: state,
	})
	l := newInside()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headTimeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context { return api.WithLocal(ctx, os.Geteuid()) }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l) // until it is closed
	}()
	to, err := newRemote("http://headgate", dir, l.dial)
	if err != nil {
		return nil, err
	}
	idle := to.close
	to.close = func() {
		idle()
		server.Close()
		<-done
		events.Close()
		if err := state.Close(); err != nil {
			log.Error("close state directory", "error", err)
		}
		back()
	}
	return to, nil
}

// inside is a listener for connections of this process.
type inside struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newInside() *inside { return &inside{make(chan net.Conn), make(chan struct{})} }

// dial connects to the listener.
func (l *inside) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
	case <-wait.Done():
	}
	near.Close()
	far.Close()
	return nil, net.ErrClosed
}

// Accept returns the next connection.
func (l *inside) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, io.EOF
	}
}

// Close ends Accept. It is called once.
func (l *inside) Close() error {
	close(l.closed)
	return nil
}

// Addr names the listener.
func (l *inside) Addr() net.Addr { return &net.UnixAddr{Name: "inside", Net: "unix"} }
