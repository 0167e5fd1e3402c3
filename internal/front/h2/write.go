package h2

import (
	"errors"
	"fmt"

	"headgate/internal/exchange"
)

// maxOut is how many bytes are collected before streams have to wait, and
// maxQueue how many may be collected of what does not wait: answers to PING and
// SETTINGS, resets.
const (
	maxOut   = 32 << 10
	maxQueue = 256 << 10
	outKeep  = 64 << 10
)

// rounds is how often one stream writes before another takes its turn.
const rounds = 4

// sink is what the connection is to its writer.
type sink Conn

// WriteNow writes to the client.
func (k *sink) WriteNow(b []byte) error { return k.nc.WriteNow(b) }

// WroteLocked moves on what streams have to send.
func (k *sink) WroteLocked() { (*Conn)(k).fill() }

// FailedLocked ends the connection.
func (k *sink) FailedLocked(err error) {
	(*Conn)(k).failLocked(fmt.Errorf("write to the client: %w", err))
}

// PassLocked has a stream that waits write what is collected, or else a worker.
func (k *sink) PassLocked() {
	if s := k.mu.queue.first(); s != nil {
		s.wake.Raise()
	} else {
		(*Conn)(k).flushAside()
	}
}

// Broke ends the connection. The socket is closed first and the rest is done aside, as the
// lock may have been left held.
func (k *sink) Broke(v any) {
	exchange.Broken(k.front.Log, v, "HTTP/2 connection", "peer", k.facts.Peer)
	k.socket.Close()
	go (*Conn)(k).fail(errBroken)
}

var errBroken = errors.New("the connection was ended by a broken invariant")

// seal lets nothing more be collected, ends all streams, and waits until what was
// collected is written.
func (c *Conn) seal(why error) {
	c.mu.Lock()
	for _, o := range c.mu.streams.All() {
		s := o.Stream
		if s.gone == nil {
			s.gone = errLeft(why)
		}
		s.lookUp()
	}
	c.mu.FinishLocked()
	c.mu.Unlock()
}

// lastWrite returns why the connection cannot be written to, or nil.
func (c *Conn) lastWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.Err
}

// fail ends the connection at once.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	c.failLocked(err)
	c.mu.Unlock()
	// TLS said goodbye before, if it was to; its own Close might wait for a client
	// that does not read.
	c.socket.Close()
}

// failLocked lets nothing more be sent and wakes everyone who waits. The reader
// notices by the close of the connection, which follows when it is kicked.
func (c *Conn) failLocked(err error) {
	if c.mu.Err != nil {
		return
	}
	c.mu.EndLocked(errLeft(err))
	c.releaseLocked()
	for _, o := range c.mu.streams.All() {
		s := o.Stream
		if s.gone == nil {
			s.gone = c.mu.Err
		}
		s.lookUp()
	}
	c.nc.Kick()
}
