// Package ipfilter lets clients in or refuses them by address: deny wins, and an
// allow list refuses everyone who is not in it. A request is refused before
// anything else is done with it, upgrades included.
//
// The address is the exchange's ClientIP, which clientip has settled.
package ipfilter

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"log/slog"
	"net/netip"

	"headgate/internal/exchange"
	"headgate/internal/setting/ipset"
)

// Compile returns the filter. Lists without references are kept over changes that leave
// them alone, and equal ones are held once. Settings that were checked give no
// error.
func Compile(c *Config, env exchange.Env) (exchange.Filter, error) {
	l, err := keep(c, env)
	if err != nil {
		return exchange.Filter{}, err
	}
	f := exchange.Filter{Name: "ip_filter", Request: l.check}
	if l.allow.Refers() || l.deny.Refers() {
		f.Request = l.judgeReferences
	}
	if c.Mode == Observe {
		o := &observer{check: f.Request, log: env.Log, scope: env.Scope}
		f.Request = o.request
	}
	return f, nil
}

// CompileStream returns the filter for a TCP or UDP proxy.
func CompileStream(c *Config, env exchange.Env) (exchange.StreamFilter, error) {
	l, err := keep(c, env)
	if err != nil {
		return exchange.StreamFilter{}, err
	}
	f := exchange.StreamFilter{Name: "ip_filter", Admit: l.answer}
	if c.Mode == Observe {
		o := &observer{admits: f.Admit, log: env.Log, scope: env.Scope}
		f.Admit = o.admit
	}
	return f, nil
}

func keep(c *Config, env exchange.Env) (*lists, error) {
	var err error
	if len(ipset.References(c.Allow))+len(ipset.References(c.Deny)) > 0 {
		return newLists(c, env) // what they refer to is another with each plan
	}
	l := exchange.Keep(env, "ip_filter", digest(c), func() (l *lists) {
		l, err = newLists(c, env)
		return l
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// digest stands for what is in the lists, in order: they may be long.
func digest(c *Config) string {
	h := sha256.New()
	add(h, c.Allow)
	add(h, c.Deny)
	return string(h.Sum(nil))
}

func add(h hash.Hash, list []string) {
	h.Write(binary.AppendUvarint(nil, uint64(len(list))))
	var b []byte
	for _, text := range list {
		b = append(append(b[:0], text...), '\n')
		h.Write(b)
	}
}

// lists are the compiled lists. They are immutable.
type lists struct {
	allow, deny *ipset.Matcher // allow is nil when there is none
}

func newLists(c *Config, env exchange.Env) (*lists, error) {
	l := &lists{}
	var err error
	if len(c.Allow) > 0 {
		if l.allow, err = ipset.Compile(c.Allow, env.Addresses); err != nil {
			return nil, err
		}
	}
	if l.deny, err = ipset.Compile(c.Deny, env.Addresses); err != nil {
		return nil, err
	}
	logIgnored(env, "allow", l.allow.Set())
	logIgnored(env, "deny", l.deny.Set())
	return l, nil
}

// logIgnored logs list entries without effect.
func logIgnored(env exchange.Env, name string, s *ipset.Set) {
	if n, first, wider := s.Covered(); n > 0 && env.Note != nil {
		env.Note(exchange.Note{Level: slog.LevelInfo, Text: "ip_filter has redundant entries that lie within others",
			Attrs: []any{"list", name, "entries", n, "first", first.String(), "within", wider.String()}})
	}
}

// Retire does nothing: the lists hold nothing but memory.
func (l *lists) Retire() {}

// The answers say in the log which list it was. They are shared and never
// changed.
var (
	denied     = exchange.Fail(exchange.AddressDenied, "the address is in ip_filter.deny")
	notAllowed = exchange.Fail(exchange.AddressDenied, "the address is not in ip_filter.allow")
)

// check rejects a client that may not come in.
func (l *lists) check(ex *exchange.Exchange) *exchange.Answer { return l.answer(ex.ClientIP) }

// answer returns the answer for an address, nil if it is let in.
func (l *lists) answer(a netip.Addr) *exchange.Answer {
	if l.deny.Contains(a) {
		return denied
	}
	if l.allow != nil && !l.allow.Contains(a) {
		return notAllowed
	}
	return nil
}

// judgeReferences is judge for lists with references: the look-up of a country is kept on
// the exchange, and the log says which entry it was.
func (l *lists) judgeReferences(ex *exchange.Exchange) *exchange.Answer {
	if l.deny.Has(ex) {
		return because("in ip_filter.deny by ", l.deny, ex.ClientIP)
	}
	if l.allow != nil && !l.allow.Has(ex) {
		if l.allow.Located() {
			if country := ex.Country(); country != "" {
				return exchange.Fail(exchange.AddressDenied, "the address is not in ip_filter.allow; its country is "+country)
			}
		}
		return notAllowed
	}
	return nil
}

// because returns the answer for an address in a list.
func because(how string, m *ipset.Matcher, a netip.Addr) *exchange.Answer {
	return exchange.Fail(exchange.AddressDenied, "the address is "+how+m.Why(a))
}
