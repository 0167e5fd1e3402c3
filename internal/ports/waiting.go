package ports

import (
	"errors"
	"net/netip"
	"strings"
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
func (c *Set) scheduleRetryLocked(after time.Duration) {
	if c.mu.retry != nil {
		c.mu.retry.Stop()
		c.mu.retry = nil
	}
	if c.mu.closed || len(c.mu.waiting) == 0 {
		return
	}
	c.mu.retry = time.AfterFunc(after, func() { c.retryWaiting(after) })
}

// retryWaiting opens the waiting ports that can be opened now.
func (c *Set) retryWaiting(waited time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return
	}
	p := c.current.Load()
	for key, before := range c.mu.waiting {
		port := waitingPort(p, key)
		if err := c.openWaiting(p, port); err != nil {
			c.mu.waiting[key] = waitingState(port, err, before)
			continue
		}
		delete(c.mu.waiting, key)
		c.log.Info("port opened", "port", before.Name, "address", port.Address().String(), "protocol", port.Protocol())
	}
	c.publishLocked()
	c.scheduleRetryLocked(min(2*waited, c.pace.Last))
}

// openWaiting opens the socket of a port that waited, and takes it into use.
func (c *Set) openWaiting(p *plan.Plan, port *plan.Port) error {
	if port.Protocol() == config.UDP {
		u := p.AtUDP(port.Address())
		s, err := c.openUDP(p, u)
		if err == nil {
			c.mu.udps[s.address] = s
			c.quicDrains.cut(s.address)
			c.serveUDP(s, u)
		}
		return err
	}
	if port.Protocol() == config.HTTP3 {
		s, err := c.openQUIC(p, port)
		if err == nil {
			c.mu.quics[port.Address()] = s
			c.serveQUIC(s)
			c.advertiseLocked(p)
		}
		return err
	}
	s, err := c.open(p, port)
	if err == nil {
		c.mu.sockets[port.Address().String()] = s
		c.serve(s)
	}
	return err
}

// waitingPort returns the port that waits under a key.
func waitingPort(p *plan.Plan, key string) *plan.Port {
	if address, ok := strings.CutPrefix(key, udpPrefix); ok {
		at := netip.MustParseAddrPort(address)
		if u := p.AtUDP(at); u != nil {
			return u.Port
		}
		return p.AtQUIC(at)
	}
	return p.At(netip.MustParseAddrPort(key))
}

// help returns what an operator can do about an address that cannot be opened.
func help(err error, port *plan.Port) string {
	owner := listen.Owner
	if port.Protocol() == config.HTTP3 || port.Protocol() == config.UDP {
		owner = listen.PacketsOwner
	}
	return helpWith(err, func() string { return owner(port.Address()) })
}

// Help returns what an operator can do about an address that cannot be opened for
// a listener that is no port.
func Help(err error, address netip.AddrPort) string {
	return helpWith(err, func() string { return listen.Owner(address) })
}

// helpWith is help for an address whose owner is asked for only when it matters.
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
		return "no interface of this machine has the address"
	}
	return "see what the system has run out of"
}

const permissionHint = "ports below 1024 need a right: run with CAP_NET_BIND_SERVICE (systemd: AmbientCapabilities), or set sysctl net.ipv4.ip_unprivileged_port_start"
