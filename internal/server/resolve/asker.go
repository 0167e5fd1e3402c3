package resolve

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// serverTimeout is how long one of several name servers has to answer.
const serverTimeout = 3 * time.Second

// unknownTTL means that the TTL is unknown.
const unknownTTL = time.Duration(-1)

// asker queries name servers. It leaves the rules of the system's resolver (the hosts file,
// search domains, retries, TCP after a truncated response) to package net, which does not
// return TTLs; so it reads them from the messages of the name servers.
type asker struct {
	servers []netip.AddrPort
	log     *slog.Logger // receives broken invariants, unless it is nil
	shown   string       // the name, as the log calls it
}

// host returns the endpoints of a host.
func (a asker) host(ctx context.Context, host string, port uint16) ([]Endpoint, time.Duration, error) {
	var addrs []netip.Addr
	ttl, err := a.put(ctx, func(ctx context.Context, r *net.Resolver) (err error) {
		addrs, err = r.LookupNetIP(ctx, "ip", host)
		return err
	})
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "the name has no addresses", Name: host, IsNotFound: true}
	}
	if err != nil {
		return nil, 0, err
	}
	return endpoints(addrs, port), ttl, nil
}

// The bounds of one service.
const (
	maxTargets    = 64 // that are resolved, those of the best priority first
	targetsAtOnce = 8
)

// service returns the endpoints of a service. A target that cannot be resolved is omitted
// as long as there is another one.
func (a asker) service(ctx context.Context, service string) ([]Endpoint, time.Duration, error) {
	var records []*net.SRV
	ttl, err := a.put(ctx, func(ctx context.Context, r *net.Resolver) (err error) {
		_, records, err = r.LookupSRV(ctx, "", "", service)
		if len(records) > 0 {
			return nil // some had names that cannot be, which were left out
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	// "." says that there is decidedly no such service here (RFC 2782).
	records = slices.DeleteFunc(records, func(s *net.SRV) bool { return s.Target == "." || s.Port == 0 })
	records = records[:min(len(records), maxTargets)]
	found := make([][]Endpoint, len(records))
	ttls, errs := make([]time.Duration, len(records)), make([]error, len(records))
	var all sync.WaitGroup
	turns := make(chan struct{}, targetsAtOnce)
	for i, s := range records {
		turns <- struct{}{}
		all.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					errs[i] = broken(a.log, v, a.shown)
				}
				<-turns
			}()
			found[i], ttls[i], errs[i] = a.host(ctx, strings.TrimSuffix(s.Target, "."), s.Port)
		})
	}
	all.Wait()
	var out []Endpoint
	for i, s := range records {
		if errs[i] == nil {
			ttl = shorter(ttl, ttls[i])
		}
		for _, e := range found[i] {
			e.Weight, e.Priority = int(s.Weight), int(s.Priority)
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		if err := errors.Join(errs...); err != nil {
			return nil, 0, firstError(errs)
		}
		return nil, 0, &net.DNSError{Err: "the service has no servers", Name: service, IsNotFound: true}
	}
	byPriority(out)
	return out[:min(len(out), maxEndpoints)], ttl, nil
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// shorter returns the shorter of two TTLs, either of which may be unknown.
func shorter(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// put queries the name servers in turn until one has the answer, or reports
// that there is none.
func (a asker) put(ctx context.Context, ask func(context.Context, *net.Resolver) error) (ttl time.Duration, err error) {
	if len(a.servers) == 0 {
		return a.listen(ctx, "", ask)
	}
	for i, s := range a.servers {
		step, cancel := ctx, context.CancelFunc(func() {})
		if i+1 < len(a.servers) {
			step, cancel = context.WithTimeout(ctx, serverTimeout)
		}
		ttl, err = a.listen(step, s.String(), ask)
		cancel()
		if err == nil || notFound(err) || ctx.Err() != nil {
			return ttl, err
		}
	}
	return ttl, err
}

// notFound reports whether a name server has said that there is no such name.
func notFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// listen sends a query and returns the shortest TTL in the responses. Server is the name
// server, "" is the system's.
func (a asker) listen(ctx context.Context, server string, ask func(context.Context, *net.Resolver) error) (time.Duration, error) {
	if server == "" && (runtime.GOOS == "windows" || runtime.GOOS == "darwin") {
		// What these know of names is more than what their name servers know.
		return unknownTTL, ask(ctx, net.DefaultResolver)
	}
	ear := &ear{ttl: unknownTTL}
	hear := a.guarded(ear.parse)
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if server != "" {
			address = server
		}
		var d net.Dialer
		nc, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if udp, ok := nc.(*net.UDPConn); ok {
			return &packets{udp, hear}, nil
		}
		return &stream{Conn: nc, hear: hear}, nil
	}}
	err := ask(ctx, r)
	ear.mu.Lock()
	defer ear.mu.Unlock()
	return ear.ttl, err
}

// guarded returns hear with a recover: package net reads in goroutines of its own. After a
// panic, reading returns an error, which ends the lookup instead of the process. It is
// logged once.
func (a asker) guarded(hear func(message []byte)) func(message []byte) error {
	var once sync.Once
	return func(message []byte) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = errNotHeard
				once.Do(func() { err = broken(a.log, v, a.shown) })
			}
		}()
		hear(message)
		return nil
	}
}

var errNotHeard = errors.New("broken invariant")

// ear reads the responses to one query, which may arrive over several connections at once.
type ear struct {
	mu  sync.Mutex
	ttl time.Duration // the shortest so far
}

// parse reads a message of a name server. Package net validates it; an invalid one can only
// make the next query earlier.
func (e *ear) parse(message []byte) {
	var p dnsmessage.Parser
	if _, err := p.Start(message); err != nil || p.SkipAllQuestions() != nil {
		return
	}
	for {
		h, err := p.AnswerHeader()
		if err != nil || p.SkipAnswer() != nil {
			return
		}
		e.mu.Lock()
		e.ttl = shorter(e.ttl, time.Duration(h.TTL)*time.Second)
		e.mu.Unlock()
	}
}

// packets is a connection to a name server over UDP.
type packets struct {
	*net.UDPConn
	hear func(message []byte) error
}

// Read reads a message.
func (c *packets) Read(p []byte) (int, error) {
	n, err := c.UDPConn.Read(p)
	if err == nil {
		if wrong := c.hear(p[:n]); wrong != nil {
			return 0, wrong
		}
	}
	return n, err
}

// stream is a connection to a name server over TCP, where a message comes behind
// its length.
type stream struct {
	net.Conn
	hear func(message []byte) error
	got  []byte
}

// Read reads a part of a message.
func (c *stream) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.got = append(c.got, p[:n]...)
	if len(c.got) >= 2 {
		if size := 2 + int(binary.BigEndian.Uint16(c.got)); len(c.got) >= size {
			if wrong := c.hear(c.got[2:size]); wrong != nil {
				return 0, wrong // with bytes it would be left for later
			}
			c.got = nil
		}
	}
	return n, err
}

// Lookup returns the addresses of a host, and their TTL according to the name servers;
// below 0 if it is unknown.
func Lookup(ctx context.Context, host string) (addrs []netip.Addr, ttl time.Duration, err error) {
	found, ttl, err := asker{}.host(ctx, host, 0)
	for _, e := range found {
		for _, a := range e.Addresses {
			addrs = append(addrs, a.Addr())
		}
	}
	return addrs, ttl, err
}
