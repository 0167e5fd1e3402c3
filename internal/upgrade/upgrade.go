// Package upgrade replaces the running process by another one that runs the binary
// now on disk, without closing a socket.
//
// The old process starts the new one (Start) with one end of a socket pair, and Replace
// carries out the old side: it freezes the control side, sends the descriptors and the
// state, waits until the new process says that it serves, releases what it holds, and
// acknowledges. The new process accepts what it was sent (Inherit), prepares itself
// from that, and calls Serving, which returns when the old process has released
// everything. Until then the new process writes nothing and accepts no connection, so
// the old one can always continue.
//
// Messages are JSON objects with a version: see message.go. The package knows nothing of
// ports or configurations: what is frozen and released is the business of a Service.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"
	"time"
)

// Timeout is how long a new process may take from its start until it serves.
const Timeout = 20 * time.Second

// Service is what the old process holds, and how it gives it to another process.
// Its methods are called by one goroutine.
type Service interface {
	// Freeze stops everything that writes state, and returns what the new process gets.
	// An error leaves everything as it was.
	Freeze(ctx context.Context) (*Handover, error)
	// Release stops accepting connections and unlocks the state. Nothing is closed that
	// Thaw needs.
	Release()
	// Thaw reverts Freeze, and Release if that was called: this process accepts
	// connections and writes state again.
	Thaw() error
}

// Handover is what the new process gets.
type Handover struct {
	// Files are descriptors by name. The Service owns them: they stay open here, and are
	// duplicated for the new process.
	Files []File
	// State are the parts of the state, by name.
	State []Part
}

// Part is one part of the state. A process ignores parts that it does not know.
type Part struct {
	Name string
	Data []byte
}

// Process is a process that was started to replace this one.
type Process interface {
	// PID is its number.
	PID() int
	// Kill ends it at once and waits for its end.
	Kill()
	// Ended is closed when it has ended; Err says how, from then on.
	Ended() <-chan struct{}
	Err() error
}

// Successor is the process that has taken over from this one.
type Successor struct {
	Process
	Link Link
	// Version is that of its program.
	Version string
	// Took is the time from the start of the process until it served.
	Took time.Duration
}

// Offer is what the old process says of itself.
type Offer struct {
	// Version is that of its program, Generation its number: 1 for a process that no other
	// has started to replace it.
	Version    string
	Generation int
	PID        int
}

// Old is the process that is replaced.
type Old struct {
	Offer   Offer
	Service Service
	Log     *slog.Logger
	// Start starts the new process and returns our end of the link to it.
	Start func() (Process, Link, error)
	// Released is called when the new process serves, before it hears that it may write:
	// to tell the service manager. It may be nil.
	Released func(pid int)
	// Timeout replaces the constant in tests.
	Timeout time.Duration
}

// Replace starts a new process and hands everything over to it. An error leaves this
// process serving as before, and tells why; if that is not so it wraps ErrNotThawed.
func (o *Old) Replace(ctx context.Context) (*Successor, error) {
	timeout := o.Timeout
	if timeout == 0 {
		timeout = Timeout
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	process, link, err := o.Start()
	if err != nil {
		return nil, fmt.Errorf("start the new process: %w", err)
	}
	s := &Successor{Process: process, Link: link}
	// A process that was killed breaks the link, which ends the conversation.
	stop := context.AfterFunc(ctx, process.Kill)
	frozen, err := o.replace(ctx, s)
	if !stop() && err == nil {
		err = ctx.Err() // it is being killed although it has just taken over
	}
	if err == nil {
		s.Took = time.Since(began)
		return s, nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("the new process did not serve within %v", timeout)
	}
	process.Kill() // before Thaw: two processes must not accept connections or lock the state
	link.Close()
	if frozen {
		if terr := o.Service.Thaw(); terr != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", ErrNotThawed, terr))
		}
	}
	return nil, err
}

// ErrNotThawed says that this process could not continue after a failed upgrade.
var ErrNotThawed = errors.New("the state cannot be opened again")

// replace is the conversation with the new process. It reports whether the service was
// frozen.
func (o *Old) replace(ctx context.Context, s *Successor) (frozen bool, err error) {
	hello, err := expect(s, kindHello)
	if err == nil {
		err = compatible(hello)
	}
	if err != nil {
		return false, err
	}
	s.Version = hello.Version
	handover, err := o.Service.Freeze(ctx)
	if err != nil {
		return false, err
	}
	return true, o.handOver(s, handover)
}

func (o *Old) handOver(s *Successor, h *Handover) error {
	if err := sendHandover(s.Link, o.Offer, h); err != nil {
		return ended(s, err)
	}
	if _, err := expect(s, kindServing); err != nil {
		return err
	}
	o.Service.Release()
	if o.Released != nil {
		o.Released(s.PID())
	}
	if err := s.Link.Send(&Message{Kind: kindAcknowledged}, nil); err != nil {
		return ended(s, err)
	}
	return nil
}

// expect receives the next message, which must be of a kind.
func expect(s *Successor, kind string) (*Message, error) {
	m, files, err := s.Link.Receive()
	closeAll(files)
	switch {
	case err != nil:
		return nil, ended(s, err)
	case m.Kind == kindFailed:
		return nil, cannotServe(m.Reason)
	case m.Kind != kind:
		return nil, fmt.Errorf("the new process sent the message %q, expected %q", m.Kind, kind)
	}
	return m, nil
}

// endGrace is how long a process whose link has broken may take to end, so that the
// error says how it ended.
const endGrace = 10 * time.Second

// ended returns the error for a link that has failed: the reason that the process has
// sent, or how it ended, says more.
func ended(s *Successor, err error) error {
	if !broken(err) {
		return fmt.Errorf("exchange messages with the new process: %w", err)
	}
	if reason := lastWords(s.Link); reason != "" {
		return cannotServe(reason)
	}
	late := time.NewTimer(endGrace)
	defer late.Stop()
	select {
	case <-s.Ended():
		if e := s.Err(); e != nil {
			return fmt.Errorf("the new process ended before it served: %w; its log says why", e)
		}
		return errors.New("the new process ended before it served; its log says why")
	case <-late.C:
		return fmt.Errorf("exchange messages with the new process: %w", err)
	}
}

func cannotServe(reason string) error {
	return fmt.Errorf("the new process cannot serve: %s", reason)
}

// broken reports whether an error of a link says that the other process has closed it.
func broken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// lastWords returns the reason in the last message on a broken link, "" for none. The
// new process may have sent it and ended while this one was still sending the state. If
// it left messages unread, the first read fails with ECONNRESET; the message follows.
func lastWords(l Link) string {
	for range 2 {
		m, files, err := l.Receive()
		closeAll(files)
		switch {
		case err == nil && m.Kind == kindFailed:
			return m.Reason
		case err == nil || !errors.Is(err, syscall.ECONNRESET):
			return ""
		}
	}
	return ""
}

// Result is what an upgrade has done.
type Result struct {
	// PID is the new process.
	PID int `json:"pid"`
	// Version is the version of its program.
	Version string `json:"version"`
	// From is the version of the previous program.
	From string `json:"from"`
	// Generation is the number of the new process.
	Generation int `json:"generation"`
	// Took is how long it took until the new process served, in seconds.
	Took float64 `json:"took_seconds"`
	// Connections is how many connections the process before still has.
	Connections int `json:"connections"`
}

// State is what a process shows of upgrades.
type State struct {
	// Version is the version of the program.
	Version string `json:"version"`
	// PID is the process.
	PID int `json:"pid"`
	// Generation is the number of the process: 1 for one that has replaced none.
	Generation int `json:"generation"`
	// Running says that an upgrade is in progress: changes are rejected meanwhile.
	Running bool `json:"in_progress"`
	// Previous is the process that this one has replaced, while it has connections. Absent
	// is none.
	Previous *Previous `json:"previous,omitempty"`
}

// Previous is a process that was replaced and still has connections.
type Previous struct {
	// PID is the process.
	PID int `json:"pid"`
	// Version is the version of its program.
	Version string `json:"version"`
	// Generation is the number of the process.
	Generation int `json:"generation"`
	// Since is when it was replaced.
	Since time.Time `json:"since"`
	// Connections is how many connections it still has.
	Connections int `json:"connections"`
}

// Refusal is why no upgrade is made.
type Refusal struct {
	// Code is one word.
	Code string
	// Detail says why, Remedy what to do.
	Detail, Remedy string
}

// Refuse returns a *Refusal.
func Refuse(code, detail, remedy string) error { return &Refusal{code, detail, remedy} }

// Error tells why and what to do.
func (r *Refusal) Error() string { return r.Detail + "; " + r.Remedy }

// Check is whether the binary now on disk can take over.
type Check struct {
	// PID is the running process.
	PID int `json:"pid"`
	// From is the version of its program.
	From string `json:"from"`
	// Version is the version of the binary on disk.
	Version string `json:"version"`
	// Problems are why it cannot; absent if it can.
	Problems []string `json:"problems,omitempty"`
}
