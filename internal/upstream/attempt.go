package upstream

import (
	"errors"

	"headgate/internal/exchange"
)

// attempt makes one attempt at one server, over a kept connection if there is one.
func (s *Servers) attempt(ex *exchange.Exchange, srv *Server) *exchange.Error {
	if srv.pool.speaksMulti(ex) {
		return s.attemptShared(ex, srv)
	}
	return s.attemptPlain(ex, srv)
}

// attemptPlain makes one attempt over HTTP/1.1.
func (s *Servers) attemptPlain(ex *exchange.Exchange, srv *Server) *exchange.Error {
	for {
		c := srv.pool.get(ex.Times.Tried, mustBeQuiet(ex))
		fresh := c == nil
		if fresh {
			var err error
			ex.Times.Dialed = exchange.Now()
			c, err = srv.pool.dial(ex.Limits.ConnectTimeout)
			ex.Times.Connected = exchange.Now()
			if err != nil {
				return &exchange.Error{Reason: dialReason(err), Err: err}
			}
		}
		err := c.roundTrip(ex, srv, s.host)
		if err == nil {
			return nil
		}
		c.close()
		if !fresh && errors.Is(err, errStale) && mayRepeat(ex) {
			continue // the server had closed it; nothing was answered
		}
		return finalError(ex, classify(err), true)
	}
}

// finalError changes a failure to connect into a different one if another server cannot get
// the whole request any more. kept means that the body was not abandoned.
func finalError(ex *exchange.Exchange, e *exchange.Error, kept bool) *exchange.Error {
	if !connectFailed(e) || kept && afresh(ex) {
		return e
	}
	return &exchange.Error{Reason: e.Reason, Err: errors.New(e.Err.Error())}
}

// afresh prepares the body of a request for another attempt, and reports whether all of it
// is available: data that an attempt has read is lost, unless it was kept. There must be no
// concurrent reader.
func afresh(ex *exchange.Exchange) bool {
	if r, ok := ex.Request.Body.(*replay); ok {
		return r.rewind(ex)
	}
	return ex.Received == 0 || atHand(ex)
}

// mustBeQuiet reports whether a pooled connection must be checked before it is used: the
// request could not be sent again if the connection turned out to be closed, or to have
// unexpected data.
func mustBeQuiet(ex *exchange.Exchange) bool { return !idempotent(ex) || !atHand(ex) }

// mayRepeat reports whether a request may be sent again although a server may have received
// it (RFC 9110, section 9.2.2): it is idempotent and its body is complete.
func mayRepeat(ex *exchange.Exchange) bool {
	return idempotent(ex) && (ex.Received == 0 || atHand(ex))
}

func idempotent(ex *exchange.Exchange) bool {
	switch ex.Request.Method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return ex.Request.Upgrade == ""
	}
	return false
}

// atHand reports whether the body of a request, if there is one, has come whole
// and can be sent as often as needed.
func atHand(ex *exchange.Exchange) bool {
	if ex.Request.Body == nil {
		return true
	}
	w, ok := ex.Request.Body.(exchange.Whole)
	if ok {
		_, ok = w.Whole()
	}
	return ok
}
