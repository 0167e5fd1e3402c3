package upstream

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/http1"
)

// explain assigns a reason to an error of this connection, and describes what
// happened and with which server.
func (c *conn) explain(err error) error {
	var known *exchange.Error
	var rule http1.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, errStale):
		return err
	case c.pool.tls != nil && !c.used && refusedByAlert(err):
		return &exchange.Error{Reason: exchange.UpstreamTLS, Err: c.pool.lateFault(err)}
	case c.pool.tls != nil && !c.used && isEnd(err) && c.pool.asked.Load():
		// Without an alert it may as well have read the request first: this is not a
		// connection that did not come about.
		return &exchange.Error{Reason: exchange.UpstreamTLS, Err: errors.New(c.pool.lateFault(err).Error())}
	case !c.looked && (errors.As(err, &rule) || errors.Is(err, errInvalid)):
		return fmt.Errorf("%w, or had spoken unasked: %v", errStale, err)
	case errors.As(err, &rule), errors.Is(err, errInvalid), errors.Is(err, io.ErrShortBuffer):
		return &exchange.Error{Reason: exchange.UpstreamInvalid, Err: fmt.Errorf("server %s: %w", c.pool.address, err)}
	case errors.Is(err, netconn.ErrTimeout):
		return &exchange.Error{Reason: exchange.UpstreamTimeout, Err: fmt.Errorf("server %s did not answer in time", c.pool.address)}
	case errors.Is(err, netconn.ErrKicked) && c.upload != nil:
		if uerr := c.upload.wait(); uerr != nil {
			return clientError(uerr)
		}
	}
	if isEnd(err) {
		return &exchange.Error{Reason: exchange.UpstreamReset, Err: fmt.Errorf("server %s closed the connection: %w", c.pool.address, err)}
	}
	return &exchange.Error{Reason: exchange.UpstreamReset, Err: fmt.Errorf("server %s: %w", c.pool.address, err)}
}

// isEnd reports whether an error means that the other side has closed.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// classify returns the error with its reason.
func classify(err error) *exchange.Error {
	var known *exchange.Error
	if errors.As(err, &known) {
		return known
	}
	return &exchange.Error{Reason: exchange.UpstreamReset, Err: err}
}
