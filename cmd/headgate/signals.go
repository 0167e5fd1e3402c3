package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
)

// proxy is what signals ask of a running proxy.
type proxy interface {
	// Reload reads the configuration again and applies it. It logs why it did
	// not, and returns that too.
	Reload() error
	// Reopen opens log files again.
	Reopen() error
}

// signals handles signals.
type signals struct {
	log    *slog.Logger
	proxy  proxy
	notify notifier
	stop   context.CancelFunc
	// exit ends the process at once.
	exit func(code int)
	// errors receives the stacks of all goroutines when a signal requests them.
	errors io.Writer
	// upgrade replaces the process with one that runs the binary now on disk. It logs the
	// result. Nil does nothing.
	upgrade func()
	// listening, if not nil, is called when signals are handled.
	listening func()
}

// serve handles signals until ctx ends, and then restores their default. A slow reload does
// not delay a stop.
func (s *signals) serve(ctx context.Context) {
	all := slices.Concat(stopSignals, reloadSignals, reopenSignals, upgradeSignals, stackSignals)
	received := make(chan os.Signal, 8)
	signal.Notify(received, all...)
	defer signal.Stop(received)
	if s.listening != nil {
		s.listening()
	}
	reloads := make(chan struct{}, 1)
	reloaded := make(chan struct{})
	go func() {
		defer close(reloaded)
		s.reload(reloads)
	}()
	defer func() {
		close(reloads)
		<-reloaded
	}()
	stopping := false
	for {
		select {
		case <-ctx.Done():
			return
		case sig := <-received:
			switch {
			case slices.Contains(reloadSignals, sig):
				select {
				case reloads <- struct{}{}:
				default: // one is waiting already
				}
			case slices.Contains(reopenSignals, sig):
				s.reopen()
			case slices.Contains(upgradeSignals, sig):
				if s.upgrade != nil {
					go s.upgrade() // it outlives this loop, as the process does not
				}
			case slices.Contains(stackSignals, sig):
				s.printStacks()
			case stopping:
				s.log.Warn("stopped at once", "signal", sig.String())
				s.exit(exitInvalid)
				return
			default:
				stopping = true
				s.log.Info("stopping after requests in progress complete; a second signal stops at once", "signal", sig.String())
				s.notify.stopping()
				s.stop()
			}
		}
	}
}

// reload applies the configuration for each request.
func (s *signals) reload(asked <-chan struct{}) {
	for range asked {
		s.notify.reloading()
		s.notify.reloaded(s.proxy.Reload())
	}
}

// printStacks writes the stacks of all goroutines, for a bug report. The process
// goes on.
func (s *signals) printStacks() {
	s.log.Info("writing goroutine stacks to standard error")
	if err := pprof.Lookup("goroutine").WriteTo(s.errors, 2); err != nil {
		s.log.Error("cannot write goroutine stacks", "error", err)
	}
}

func (s *signals) reopen() {
	if err := s.proxy.Reopen(); err != nil {
		s.log.Error("cannot reopen log files", "error", err)
		return
	}
	s.log.Info("log files reopened")
}
