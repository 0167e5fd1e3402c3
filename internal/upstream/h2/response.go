package h2

import (
	"fmt"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// answer waits for the head of the final response.
func (s *Stream) answer() error {
	w := s.watch(0)
	for {
		c := s.conn
		c.mu.Lock()
		switch {
		case len(s.interims) > 0:
			in := s.interims[0]
			s.interims = append(s.interims[:0], s.interims[1:]...)
			c.mu.Unlock()
			if err := s.interim(&in); err != nil {
				return err
			}
			continue
		case s.answered:
			c.mu.Unlock()
			return nil
		case s.gone != nil:
			err := s.gone
			c.mu.Unlock()
			return err
		}
		c.mu.Unlock()
		if err := s.awaitHead(&w); err != nil {
			return err
		}
	}
}

// awaitHead waits for news until the timeout of the head. The time of an
// upload does not count: it is limited by its own idle time.
func (s *Stream) awaitHead(w *waiting) error {
	now := exchange.Now()
	if s.up != nil {
		if done := s.up.finished.Load(); done != 0 {
			s.since = max(s.since, done)
		} else {
			s.since = now
		}
	}
	if s.held {
		if w.since == 0 {
			w.since, w.look = now, continueLook
		}
		w.limit = s.conn.settings.ContinueWait
	} else if w.limit = 0; s.limit > 0 {
		w.since, w.limit = s.since, s.limit
	}
	switch err := w.wait(); {
	case err != errLate:
		return err
	case s.held:
		s.letGo()
		w.since, w.look = 0, lookFirst
		return nil
	case s.up != nil && s.up.finished.Load() == 0:
		return nil
	}
	return &exchange.Error{Reason: exchange.UpstreamTimeout, Err: fmt.Errorf("server %s did not answer in time", s.conn.settings.Name)}
}

// interim handles a 1xx response: 100 lets a body go that waits for it, others are
// passed on (RFC 9110, section 15.2).
func (s *Stream) interim(in *interim) error {
	if in.status == 100 {
		s.letGo()
		return nil
	}
	http1.StripHopByHop(&in.fields)
	if err := s.ex.Inform(in.status, &in.fields); err != nil {
		return &exchange.Error{Reason: exchange.ClientClosed, Err: err}
	}
	return nil
}

// letGo starts to send a body that waited for 100 Continue.
func (s *Stream) letGo() {
	if s.held {
		s.held = false
		s.startUpload(0)
	}
}

// respond makes the head that came the response of the exchange.
func (s *Stream) respond() {
	ex, c := s.ex, s.conn
	s.tape.keep.Store(false)
	ex.Times.Head = exchange.Now()
	rs := &ex.Response
	rs.Reset()
	c.mu.Lock()
	rs.Header, s.fields = s.fields, rs.Header
	rs.Status, rs.Length = s.status, s.length
	over := s.complete() && s.trailer.Len() == 0 // no trailers can come
	empty := over && s.body.EmptyLocked()
	c.mu.Unlock()
	// Responses of gRPC end with trailers and may be nothing else. They need no length; some
	// servers send 0 with one without a message.
	switch trailers := exchange.GRPC(rs.Header.Get(header.ContentType)); {
	case s.noBody || rs.Status == 304:
	case empty && rs.Length < 0 && !trailers:
		rs.Length = 0
	case rs.Length == 0 && (trailers || !over):
		rs.Length = -1 // fronts look for none behind a body that is known to be empty
	}
	rs.Header.DeleteFunc(func(f *header.Field) bool { return f.ID.HopByHop() })
	rs.Body = s
}
