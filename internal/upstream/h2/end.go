package h2

import (
	"errors"
	"fmt"
	"io"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/http2"
)

// fail ends the connection: no stream goes on.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	c.failLocked(err)
	c.mu.Unlock()
}

// failLocked ends the connection. The reader, who is kicked, closes it.
func (c *Conn) failLocked(err error) {
	if c.mu.Err != nil {
		return
	}
	c.mu.EndLocked(c.explain(err))
	c.mu.away = true
	for _, o := range c.mu.streams.All() {
		s := o.Stream
		s.loseLocked(c.mu.Err)
	}
	c.nc.Kick()
}

// explain assigns a reason to the end of a connection.
func (c *Conn) explain(err error) error {
	var known *exchange.Error
	var rule *connError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &rule):
		return &exchange.Error{Reason: exchange.UpstreamInvalid, Err: fmt.Errorf("server %s: %s", c.settings.Name, rule.text)}
	case err == errSilent:
		return &exchange.Error{Reason: exchange.UpstreamTimeout, Err: fmt.Errorf("%w: server %s does not answer a PING", ErrLost, c.settings.Name)}
	case err == errRetired:
		return &exchange.Error{Reason: exchange.UpstreamReset, Err: fmt.Errorf("%w: the connection to server %s was retired", ErrUnprocessed, c.settings.Name)}
	case errors.Is(err, netconn.ErrTimeout):
		return &exchange.Error{Reason: exchange.UpstreamTimeout, Err: fmt.Errorf("%w: server %s did not read in time", ErrLost, c.settings.Name)}
	case err == io.EOF:
		return &exchange.Error{Reason: exchange.UpstreamReset, Err: fmt.Errorf("%w: server %s closed the connection", ErrLost, c.settings.Name)}
	}
	return &exchange.Error{Reason: exchange.UpstreamReset, Err: fmt.Errorf("%w: server %s: %w", ErrLost, c.settings.Name, err)}
}

// conclude sends GOAWAY if the server broke a rule, and closes the connection. A write in
// progress is interrupted.
func (c *Conn) conclude() {
	rule, ok := c.fault.(*connError)
	c.mu.Lock()
	idle := c.mu.StopLocked()
	c.mu.Unlock()
	if ok && idle {
		c.nc.SetWriteWait(lastWrite)
		c.nc.WriteNow(http2.AppendGoAway(nil, 0, rule.code, rule.text))
	}
	c.nc.Close()
}

// lastWrite is the timeout of sending GOAWAY at the end.
const lastWrite = time.Second

// connError is a rule that a server broke: it ends the connection.
type connError struct {
	code http2.Code
	text string
}

// Error returns the text.
func (e *connError) Error() string { return e.text }

func broken(c http2.Code, text string) error { return &connError{c, text} }
