package h2

import (
	"errors"

	"headgate/internal/exchange"
)

// maxOut is how many bytes are collected before bodies have to wait, maxQueue
// how many of what does not wait, and outKeep how large a buffer is kept.
const (
	maxOut   = 64 << 10
	maxQueue = 256 << 10
	outKeep  = 128 << 10
)

// sink is what the connection is to its writer.
type sink Conn

// WriteNow writes to the server.
func (k *sink) WriteNow(b []byte) error { return k.nc.WriteNow(b) }

// WroteLocked has streams that wait to send look again.
func (k *sink) WroteLocked() { (*Conn)(k).wakeSenders() }

// FailedLocked ends the connection.
func (k *sink) FailedLocked(err error) { (*Conn)(k).failLocked(err) }

// PassLocked starts a goroutine that writes.
func (k *sink) PassLocked() { k.mu.WriteAsideLocked() }

// Broke ends the connection. The socket is closed first and the rest is done aside, as the
// lock may have been left held.
func (k *sink) Broke(v any) {
	exchange.Broken(k.settings.Log, v, "HTTP/2 connection to server", "server", k.settings.Name)
	k.nc.Close()
	go func() {
		(*Conn)(k).fail(errBroken)
		(*Conn)(k).freed()
	}()
}

var errBroken = errors.New("the connection was ended by a broken invariant")

// wakeSenders has all streams that wait to send look again. c.mu is held.
func (c *Conn) wakeSenders() {
	if c.mu.blocked == 0 {
		return
	}
	for _, o := range c.mu.streams.All() {
		s := o.Stream
		if s.blocked {
			s.wakeUp.Raise()
		}
	}
}
