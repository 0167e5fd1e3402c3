package forwardauth

import (
	"errors"
	"strconv"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// The bounds of what is read of an answer's body: what a client gets of it, and
// what is read of one that lets in, so that its connection can be used again.
const (
	maxRelayed = 64 << 10
	maxIgnored = 4 << 10
)

// failed returns the answer to a client if the subrequest failed.
func failed(answer *exchange.Answer) *exchange.Answer {
	reason := exchange.AuthFailed
	switch answer.Reason {
	case exchange.ClientClosed, exchange.ClientTimeout:
		reason = exchange.ClientClosed
	case exchange.UpstreamTimeout:
		reason = exchange.AuthTimeout
	}
	return exchange.Fail(reason, "forward_auth: "+answer.Reason.String()+": "+answer.Cause)
}

// letIn lets a request pass with what the auth server says of it.
func (r *room) letIn(ex *exchange.Exchange, said *header.List) {
	list := &ex.Request.Header
	r.forget(list, true)
	ex.Personal = true
	for i := range r.names {
		n := &r.names[i]
		for _, f := range said.All() {
			if !n.is(&f) {
				continue
			}
			value := ex.Text.Join(f.Value)
			list.AddKnown(n.id, n.name, value)
			if i == r.user {
				ex.User = value
			}
		}
	}
	for _, f := range said.All() {
		if f.ID == header.SetCookie {
			ex.Cookies = append(ex.Cookies, ex.Text.Join(f.Value))
		}
	}
}

// finish reads the rest of a short answer, so that its connection is kept.
func finish(e *exchange.Subrequest) {
	rs := &e.Response
	if rs.Body != nil && rs.Length <= maxIgnored && (rs.Length >= 0 || rs.Body.Ready()) {
		var buf [1 << 9]byte
		_, _ = e.AppendBody(buf[:0], maxIgnored) // what is left goes with the connection
	}
}

// refuse sends the client the response of the auth server, or redirects it to
// sign in.
func (r *room) refuse(ex *exchange.Exchange, e *exchange.Subrequest) *exchange.Answer {
	rs := &e.Response
	cause := "forward_auth: " + r.url + " answered " + strconv.Itoa(rs.Status)
	if rs.Tunnel != nil || rs.Status < 200 {
		return exchange.Fail(exchange.AuthFailed, cause)
	}
	a := &exchange.Answer{Reason: exchange.AuthRequired, Status: rs.Status, Cause: cause, Body: []byte{}}
	if r.signin != nil && rs.Status == exchange.AuthRequired.Status() && navigates(&ex.Request) {
		r.signin.answer(a, ex)
		a.Fields = appendFields(a.Fields, rs, ex, func(id header.ID) bool { return id == header.SetCookie })
		return a
	}
	body, err := e.AppendBody(nil, maxRelayed)
	cut := errors.Is(err, exchange.ErrTooLong)
	if err != nil && !cut {
		reason := exchange.AuthFailed
		if known := (*exchange.Error)(nil); errors.As(err, &known) && known.Reason == exchange.UpstreamTimeout {
			reason = exchange.AuthTimeout
		}
		return exchange.Fail(reason, cause+", and its body broke off: "+err.Error())
	}
	coded := rs.Header.Has(header.ContentEncoding)
	if cut && coded {
		body = nil // half of it cannot be decoded
	}
	a.Body = append(a.Body, body...)
	a.Fields = appendFields(nil, rs, ex, func(id header.ID) bool {
		return !id.HopByHop() && id != header.ContentLength && id != header.AltSvc && !(id == header.ContentEncoding && cut)
	})
	return a
}

// appendFields appends copies of some fields of a response.
func appendFields(out []header.Field, rs *exchange.Response, ex *exchange.Exchange, wanted func(header.ID) bool) []header.Field {
	for _, f := range rs.Header.All() {
		if wanted(f.ID) {
			out = append(out, header.Field{ID: f.ID, Name: ex.Text.Join(f.Name), Value: ex.Text.Join(f.Value)})
		}
	}
	return out
}
