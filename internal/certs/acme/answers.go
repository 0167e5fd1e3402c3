package acme

import (
	"crypto/tls"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/miekg/dns"
)

// Answers are the responses to challenges that the ports serve. Reading acquires no lock
// and is free while there are none; it is safe for concurrent use. The zero value is ready.
type Answers struct {
	mu   sync.Mutex // held to change one of them
	http atomic.Pointer[map[string]string]
	alpn atomic.Pointer[map[string]*tls.Certificate]
	// elsewhere asks another machine for the answer to a token; nil where there is none.
	elsewhere func(token string) (answer string, ok bool)
}

// Challenger is implemented by stores that can ask another machine for the answer to a
// token of http-01: an authority may request it before it has come to this machine.
type Challenger interface {
	// Challenge returns the answer to a token. It limits its time and the number of
	// requests, because any client can request a token.
	Challenge(token string) (answer string, ok bool)
}

// Elsewhere returns the answer to a token that HTTP does not know, if another machine has
// it. It can take seconds.
func (a *Answers) Elsewhere(token string) (answer string, ok bool) {
	if a.elsewhere == nil {
		return "", false
	}
	return a.elsewhere(token)
}

// HTTP returns the answer to a token of http-01 (RFC 8555, section 8.3). A token that
// is not ours has none.
func (a *Answers) HTTP(token string) (answer string, ok bool) {
	m := a.http.Load()
	if m == nil {
		return "", false
	}
	answer, ok = (*m)[token]
	return answer, ok
}

// Pending reports whether there is any answer of http-01.
func (a *Answers) Pending() bool { return a.http.Load() != nil }

// TLS returns the certificate for a tls-alpn-01 handshake with a name, nil if there is no
// such challenge.
func (a *Answers) TLS(name string) *tls.Certificate {
	m := a.alpn.Load()
	if m == nil {
		return nil
	}
	return (*m)[name]
}

func (a *Answers) setHTTP(token, answer string) { change(&a.mu, &a.http, token, &answer) }
func (a *Answers) dropHTTP(token string)        { change(&a.mu, &a.http, token, nil) }

func (a *Answers) setTLS(name string, cert *tls.Certificate) { change(&a.mu, &a.alpn, name, &cert) }
func (a *Answers) dropTLS(name string)                       { change(&a.mu, &a.alpn, name, nil) }

// change replaces a map by one with a key set, or without it if value is nil.
func change[V any](mu *sync.Mutex, at *atomic.Pointer[map[string]V], key string, value *V) {
	mu.Lock()
	defer mu.Unlock()
	next := map[string]V{}
	if old := at.Load(); old != nil {
		maps.Copy(next, *old)
	}
	if value != nil {
		next[key] = *value
	} else {
		delete(next, key)
	}
	if len(next) == 0 {
		at.Store(nil)
		return
	}
	at.Store(&next)
}

// alpnName returns the server name in a handshake of tls-alpn-01: the host, or for an
// address its name in the reverse DNS (RFC 8738, section 6).
func alpnName(name string) string {
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return name
	}
	reverse, err := dns.ReverseAddr(addr.String())
	if err != nil {
		return name
	}
	return strings.TrimSuffix(reverse, ".")
}
