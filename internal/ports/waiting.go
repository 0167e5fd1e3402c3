package ports

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"headgate/internal/config"
	"headgate/internal/plan"
	"headgate/internal/ports/listen"
)

// How long a port whose address is busy waits for the next try.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 30 * time.Second
)

// Pace is how long a waiting port waits for its next try, at first and at most.
type Pace struct{ First, Last time.Duration }

// scheduleRetryLocked tries waiting ports again after a while.
func (s *Set) scheduleRetryLocked(after time.Duration) {
	if s.mu.retry != nil {
		s.mu.retry.Stop()
		s.mu.retry = nil
	}
	if s.mu.closed || len(s.mu.waiting) == 0 {
		return
	}
	s.mu.retry = time.AfterFunc(after, func() { s.retryWaiting(after) })
}

// retryWaiting opens the waiting ports that can be opened now.
func (s *Set) retryWaiting(waited time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return
	}
	p := s.current.Load()
	for k, before := range s.mu.waiting {
		s.retryLocked(p, k, before)
	}
	s.endLocked(p)
	s.scheduleRetryLocked(min(2*waited, s.pace.Last))
}

// retryLocked opens a waiting port if that can be now. before is its state, as far as it
// is to stay.
func (s *Set) retryLocked(p *plan.Plan, k key, before *State) {
	port := k.in(p)
	l, err := s.open(p, port)
	if err != nil {
		s.mu.waiting[k] = waitingState(port, err, before)
		return
	}
	delete(s.mu.waiting, k)
	s.serve(l)
	s.log.Info("port opened", "port", port.Name(), "address", port.Address().String(), "protocol", port.Protocol())
}

// errPort says why a port cannot be opened, and what helps.
func errPort(port *plan.Port, err error) error {
	return &OpenError{Name: port.Name(), Protocol: port.Protocol(), Remedy: help(err, port), Err: err}
}

// OpenError is the error of a change that wants an address which cannot be opened.
type OpenError struct {
	// Name and Protocol are those of the port, or of the TCP or UDP proxy, whose protocol
	// is config.TCP or config.UDP.
	Name     string
	Protocol config.Protocol
	// Remedy is what an operator can do.
	Remedy string
	// Err is what went wrong.
	Err error
}

// Error returns the name, what went wrong, and what to do.
func (e *OpenError) Error() string { return fmt.Sprintf("port %s: %v; %s", e.Name, e.Err, e.Remedy) }

// Unwrap returns what went wrong.
func (e *OpenError) Unwrap() error { return e.Err }

// Temporary reports whether opening an address may succeed later without a
// change of the configuration.
func Temporary(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) ||
		errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// help returns what an operator can do about an address that cannot be opened.
func help(err error, port *plan.Port) string {
	owner := listen.Owner
	if keyOf(port).kind != tcpKind {
		owner = listen.PacketsOwner
	}
	return helpWith(err, func() string { return owner(port.Address()) })
}

// Help returns what an operator can do about an address that cannot be opened for
// a listener that is no port.
func Help(err error, address netip.AddrPort) string {
	return helpWith(err, func() string { return listen.Owner(address) })
}

// helpWith returns help for an address whose owner is determined only when
// needed.
func helpWith(err error, owner func() string) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		if who := owner(); who != "" {
			return who + " has it: stop that, or choose another address"
		}
		return "stop what listens there, or choose another address"
	case errors.Is(err, syscall.EACCES):
		return permissionHint
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no interface of this machine has the address; if it moves between machines, as with keepalived, set sysctl net.ipv4.ip_nonlocal_bind (IPv6: net.ipv6.ip_nonlocal_bind) to 1"
	}
	return "see what the system has run out of"
}

const permissionHint = "ports below 1024 need a right: run with CAP_NET_BIND_SERVICE (systemd: AmbientCapabilities), or set sysctl net.ipv4.ip_unprivileged_port_start"
