package exchange

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"headgate/internal/proto/header"
)

// Pipeline is a compiled route: filters in the order in which they run, the source after
// them, and the observers of finished exchanges. It is immutable and shared by all
// exchanges of the route.
type Pipeline struct {
	// Filters act on the request in this order and on the response in reverse.
	Filters []Filter
	// Source makes the response if no filter answered.
	Source Source
	// Counter is called with every finished exchange before Done, and keeps no reference to
	// it; it may be nil. Many pipelines each have their own.
	Counter Counter
	// Done is called with every finished exchange: the access log. It must keep no
	// reference to it. The response of a server is closed by then, and the headers are
	// gone, except those in Logged.
	Done []func(*Exchange)
	// Logged names the fields of responses that Done reads. They are copied, so nil,
	// for none, costs nothing.
	Logged []string
	// Alternative is announced with every response; it may be nil.
	Alternative *Alternative
	// Tunnels knows the upgraded connections; it may be nil.
	Tunnels *Tunnels
	// Log receives broken invariants.
	Log *slog.Logger
}

// Counter counts finished exchanges.
type Counter interface{ Done(*Exchange) }

// Serve takes one exchange from its head to its end. It returns when the
// response has been handed to the client's connection, or when that failed; where
// TunnelGoesOn, when the tunnel has begun.
func (p *Pipeline) Serve(ex *Exchange) {
	defer p.done(ex)

	ex.pipeline = p
	answer := p.request(ex)
	if answer == nil {
		answer = p.Source.Respond(ex)
		if answer == nil {
			answer = ex.switched()
		}
	}
	if answer != nil {
		answer.apply(ex)
	}
	p.response(ex)
	p.send(ex)
}

// InTunnel reports whether Serve has left a tunnel that goes on.
func (ex *Exchange) InTunnel() bool { return ex.goesOn }

// EndTunnel takes an exchange to its end whose tunnel has ended.
func (ex *Exchange) EndTunnel() {
	ex.goesOn = false
	defer ex.pipeline.done(ex)
	ex.Times.End = Now()
}

// Refuse takes an exchange that no route can take, such as a request that is not
// valid, straight to the answer. Filters and source are not asked.
func (p *Pipeline) Refuse(ex *Exchange, answer *Answer) {
	defer p.done(ex)
	answer.apply(ex)
	p.send(ex)
}

// Rehearse takes an exchange that is not real through the filters, as Serve does, and
// asks no source. When one of them answers, it returns the answer and the filter's
// name.
func (p *Pipeline) Rehearse(ex *Exchange) (answer *Answer, by string) {
	ex.Rehearsal = true
	if answer = p.request(ex); answer != nil {
		by = p.Filters[ex.ran-1].Name
	}
	return answer, by
}

// Only returns a pipeline to rehearse with that has, of p's filters, those with one of
// these names. Its exchanges are not observed.
func (p *Pipeline) Only(names ...string) *Pipeline {
	only := &Pipeline{Source: p.Source, Log: p.Log}
	for i := range p.Filters {
		if slices.Contains(names, p.Filters[i].Name) {
			only.Filters = append(only.Filters, p.Filters[i])
		}
	}
	return only
}

// request asks the filters in order. The first answer wins.
func (p *Pipeline) request(ex *Exchange) *Answer {
	for i := range p.Filters {
		ex.ran = i + 1
		if f := p.Filters[i].Request; f != nil {
			if answer := f(ex); answer != nil {
				return answer
			}
		}
	}
	return nil
}

// response lets the filters that saw the request see the response, last first.
func (p *Pipeline) response(ex *Exchange) {
	for i := ex.ran - 1; i >= 0; i-- {
		if f := p.Filters[i].Response; f != nil {
			f(ex)
		}
	}
}

// send hands the response to the front and notes why it broke off, if it did.
func (p *Pipeline) send(ex *Exchange) {
	if ex.Response.Ours && ex.Response.Status == StatusClientClosed {
		ex.Front.Abort(ex)
		ex.Times.End = Now()
		return
	}
	if p.Alternative != nil {
		p.Alternative.addTo(&ex.Response)
	}
	if ex.Response.Tunnel != nil {
		ex.tunnel = p.Tunnels.add(ex.Place, ex.Response.Tunnel, ex.SignedIn)
	}
	err := ex.Front.Send(ex)
	ex.goesOn = err == nil && ex.TunnelGoesOn && ex.Response.Tunnel != nil
	ex.Times.End = Now()
	if err == nil || ex.Reason != None {
		return
	}
	ex.Reason, ex.Cause = ClientClosed, ""
	if e := (*Error)(nil); errors.As(err, &e) {
		ex.Reason = e.Reason
		if e.Err != nil && err == error(e) {
			err = e.Err // the reason is recorded separately
		}
	}
	ex.Cause = err.Error()
}

// done releases the resources of the response and calls the observers. It runs after a
// panic, too: then the client gets a 500 if nothing was sent yet. Closing comes first,
// since a request body may still be sent to a server until then.
func (p *Pipeline) done(ex *Exchange) {
	if v := recover(); v != nil {
		p.broken(ex, v)
	}
	if ex.goesOn {
		return // till EndTunnel
	}
	if ex.tunnel != nil {
		p.Tunnels.remove(ex.tunnel)
		ex.tunnel = nil
	}
	if ex.Response.Body != nil {
		if p.Logged != nil {
			p.keepLogged(ex)
		}
		ex.Response.Body.Close()
		ex.Response.Body = nil
		if p.Logged == nil {
			ex.Response.Header.Reset()
		}
	}
	p.Finish(ex)
}

// Finish reports a finished exchange to Counter and Done.
func (p *Pipeline) Finish(ex *Exchange) {
	if p.Counter != nil {
		p.Counter.Done(ex)
	}
	for _, tell := range p.Done {
		tell(ex)
	}
}

// keepLogged leaves of the response's fields those that Done reads, as copies that do
// not die with the server's connection.
func (p *Pipeline) keepLogged(ex *Exchange) {
	ex.Response.Header.DeleteFunc(func(f *header.Field) bool {
		for _, name := range p.Logged {
			if f.Is(name) {
				f.Name, f.Value = name, ex.Text.Join(f.Value)
				return false
			}
		}
		return true
	})
}

// broken answers an exchange whose filter or source panicked.
func (p *Pipeline) broken(ex *Exchange, v any) {
	ex.brokenTo(p.Log, v, "exchange")
	ex.Reason, ex.Cause = Internal, fmt.Sprint(v)
	if ex.Response.HeadSent {
		ex.Front.Abort(ex)
		return
	}
	if ex.Response.Body != nil {
		ex.Response.Body.Close()
	}
	ex.Response.Reset()
	internalAnswer.apply(ex)
	ex.Cause = fmt.Sprint(v)
	p.send(ex)
}
