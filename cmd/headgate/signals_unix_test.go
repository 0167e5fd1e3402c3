//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// recordingProxy is a proxy that tells what was asked of it.
type recordingProxy struct {
	asked  chan string
	reload error
}

func (p *recordingProxy) Reload() error { p.asked <- "reload"; return p.reload }
func (p *recordingProxy) Reopen() error { p.asked <- "reopen"; return nil }

// said passes on what is first written to it.
type said chan string

func (s said) Write(p []byte) (int, error) {
	select {
	case s <- string(p):
	default:
	}
	return len(p), nil
}

// next returns what comes next, or fails after a while.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// systemd listens where systemd would, and returns what it is told.
func systemd(t *testing.T) <-chan string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", path)
	heard := make(chan string, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			heard <- string(buf[:n])
		}
	}()
	t.Cleanup(func() {
		c.Close()
		<-done
	})
	return heard
}

func TestSignalsAskTheProxyAndTellSystemd(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	heard := systemd(t)
	p := &recordingProxy{asked: make(chan string, 4), reload: errors.New("line 3 is wrong")}
	stacks := said(make(chan string, 1))
	upgrades := make(chan struct{}, 1)
	stopped, exits := make(chan struct{}), make(chan int, 1)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	s := &signals{log: log, proxy: p, notify: notifier{log}, stop: func() { close(stopped) }, exit: func(code int) { exits <- code }, errors: stacks, upgrade: func() { upgrades <- struct{}{} }}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served, listening := make(chan struct{}), make(chan struct{})
	s.listening = func() { close(listening) }
	go func() {
		defer close(served)
		s.serve(ctx)
	}()
	next(t, listening)

	send := func(sig syscall.Signal) {
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGUSR1)
	if got := next(t, p.asked); got != "reopen" {
		t.Errorf("SIGUSR1: got %q", got)
	}
	send(syscall.SIGHUP)
	if got := next(t, p.asked); got != "reload" {
		t.Errorf("SIGHUP: got %q", got)
	}
	if got := next(t, heard); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("systemd heard %q", got)
	}
	if got := next(t, heard); got != "READY=1\nSTATUS=Serving; the last change was rejected." {
		t.Errorf("systemd heard %q", got)
	}
	send(syscall.SIGUSR2)
	next(t, upgrades)
	send(syscall.SIGIO)
	if got := next(t, stacks); !strings.Contains(got, "headgate/cmd/headgate.(*signals).serve") {
		t.Errorf("SIGIO: got %q, want the stacks of all goroutines", got)
	}
	send(syscall.SIGQUIT)
	next(t, stopped)
	if got := next(t, heard); got != "STOPPING=1\nSTATUS=Draining." {
		t.Errorf("systemd heard %q", got)
	}
	send(syscall.SIGINT)
	if got := next(t, exits); got != 1 {
		t.Errorf("a second signal: got exit %d, want 1", got)
	}
	next(t, served)
}

func TestWatchdogIsToldUntilTheEnd(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	heard := systemd(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		notifier{slog.New(slog.DiscardHandler)}.watch(ctx)
	}()
	for range 3 {
		if got := next(t, heard); got != "WATCHDOG=1" {
			t.Errorf("systemd heard %q", got)
		}
	}
	cancel()
	next(t, done)
}
