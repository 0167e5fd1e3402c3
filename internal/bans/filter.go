package bans

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"net/netip"

	"headgate/internal/exchange"
	"headgate/internal/setting/ipset"
)

type ipAddr = netip.Addr

// SourceOf returns the source of addresses that proxies in front tell, who are believed by
// these settings of client_ip. Equal settings have the same source on every node.
func SourceOf(settings any) Source {
	text, err := json.Marshal(settings)
	if err != nil {
		panic(err) // settings are texts and lists
	}
	sum := sha256.Sum256(text)
	return Source(binary.BigEndian.Uint64(sum[:]) | 1)
}

// Filter returns the filter of routes with some settings of client_ip, whose source it
// is; Peer where no proxy in front is trusted.
func (r *Rules) Filter(source Source) exchange.Filter {
	f := &filter{rules: r, engine: r.engine, source: source}
	return exchange.Filter{Name: "bans", Request: f.request, Response: f.response}
}

// filter refuses banned clients, and counts what the others do.
type filter struct {
	rules  *Rules
	engine *Engine
	source Source
}

// of returns the source of the client's address of an exchange.
func (f *filter) of(ex *exchange.Exchange) Source {
	if f.source == Peer || ex.ClientIP == ipset.Plain(ex.Conn.Remote.Addr()) {
		return Peer
	}
	return f.source
}

func (f *filter) request(ex *exchange.Exchange) *exchange.Answer {
	if ex.Rehearsal {
		return f.rehearse(ex)
	}
	if f.engine.table.count.Load() == 0 {
		return nil
	}
	b := f.engine.table.find(ex.ClientIP, f.of(ex), ex.Times.Start)
	if b == nil {
		return nil
	}
	b.refused.Add(1)
	f.engine.refused.Add(1)
	return b.answer
}

// rehearse says what Explain shows.
func (f *filter) rehearse(ex *exchange.Exchange) *exchange.Answer {
	if b := f.engine.table.find(ex.ClientIP, f.of(ex), exchange.Now()); b != nil {
		return b.answer
	}
	k := keyOf(ex.ClientIP, f.of(ex))
	for _, one := range f.rules.rules {
		one.state.mu.Lock()
		w := one.state.mu.would[k]
		if w != nil && f.engine.o.Clock().Before(w.Until) {
			ex.Note("observe mode: bans." + one.name + " would reject this client until " + moment(w.Until, w.Since) + ": " + w.Why)
		}
		one.state.mu.Unlock()
	}
	return nil
}

func (f *filter) response(ex *exchange.Exchange) {
	if !ex.Rehearsal && ex.Reason != exchange.Banned {
		f.rules.count(ex, f.of(ex))
	}
}

// Outside looks at requests that no route takes. ClientIP is the filter of client_ip that
// the defaults have. An address of a proxy that some client_ip trusts and the defaults do
// not belongs to no client: its requests are not counted, and an issue says why.
func (r *Rules) Outside(source Source, clientIP exchange.Filter) func(*exchange.Exchange, *exchange.Answer) *exchange.Answer {
	f := &filter{rules: r, engine: r.engine, source: source}
	return func(ex *exchange.Exchange, answer *exchange.Answer) *exchange.Answer {
		if answer.Reason == exchange.ACMEChallenge {
			return answer
		}
		clientIP.Request(ex)
		if ex.ClientIP == ipset.Plain(ex.Conn.Remote.Addr()) && r.engine.protected.proxy(ex.ClientIP) != "" {
			r.engine.unknownClient(ex.ClientIP)
			return answer
		}
		if ex.Times.Start == 0 {
			ex.Times.Start = exchange.Now()
		}
		if banned := f.request(ex); banned != nil {
			return banned
		}
		if !ex.Rehearsal {
			f.countAnswer(ex, answer)
		}
		return answer
	}
}

// countAnswer counts a request by the answer that it will get.
func (f *filter) countAnswer(ex *exchange.Exchange, answer *exchange.Answer) {
	reason, status := ex.Reason, ex.Response.Status
	ex.Reason, ex.Response.Status = answer.Reason, answer.Status
	if answer.Status == 0 {
		ex.Response.Status = answer.Reason.Status()
	}
	f.rules.count(ex, f.of(ex))
	ex.Reason, ex.Response.Status = reason, status
}

// Engine returns the engine, which knows whose connections are closed: also without a rule
// that rejects, as operators and other nodes ban, too.
func (r *Rules) Engine() *Engine { return r.engine }

// Admit returns the filter of TCP and UDP proxies, whose clients are peers.
func (r *Rules) Admit() exchange.StreamFilter {
	return exchange.StreamFilter{Name: "bans", Admit: func(client netip.Addr) *exchange.Answer {
		if b := r.engine.table.find(ipset.Plain(client), Peer, exchange.Now()); b != nil {
			b.refused.Add(1)
			r.engine.refused.Add(1)
			return b.answer
		}
		return nil
	}}
}
