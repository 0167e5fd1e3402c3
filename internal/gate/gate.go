// Package gate knows who is signed in to applications. An Engine keeps the sessions, the
// one-time codes that lead from the sign-in host to an application's host, and the sign-in
// providers in use; it outlives configurations. Rules about who may enter are compiled by
// package feature/gate, the sign-in page is package feature/signin.
//
// A person signs in once, at the sign-in host. That session has the person. Each
// application's host gets a cookie of its own, which belongs to that session and ends with
// it. session.go has the sessions, code.go the codes, cookie.go the cookies, pending.go
// what a browser keeps while it is at the provider, store.go what outlives the process,
// token.go the tokens of applications that cannot show the page, link.go share links.
package gate

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/bucket"
	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/gate/icon"
	"headgate/internal/gate/people"
	"headgate/internal/gate/provider"
	"headgate/internal/seal"
	"headgate/internal/store"
)

// Options is what an Engine is made of.
type Options struct {
	// Log is the application's log. Nil discards.
	Log *slog.Logger
	// Store keeps sessions.
	Store store.Store
	// Roots are the authorities by which providers are trusted; nil is the system's.
	Roots *x509.CertPool
	// Publish is called with what happens. It must be quick. It may be nil.
	Publish func(Event)
	// Own returns a person as the one who changes what is theirs, for the audit. It may be nil.
	Own func(person string, from netip.Addr) people.By
	// Cut ends tunnels and exchanges of a session or token that has ended. It may be nil.
	Cut func(exchange.SignIn)
	// Detached returns for how long this node has not known what others write to the store, 0 if
	// it does. It may be nil.
	Detached func() time.Duration

	selfTests selfTestPace // zero is the usual one
}

// EventKind is what happened.
type EventKind uint8

// The kinds of events.
const (
	// SignedIn is of a person who has signed in.
	SignedIn EventKind = iota
	// SignedOut is of a session that was ended.
	SignedOut
	// SignInFailed is of a sign-in that a provider did not confirm.
	SignInFailed
	// SignInUnreachable is of a sign-in page that this machine cannot reach, and
	// SignInReachable of one that it can reach again.
	SignInUnreachable
	SignInReachable
)

// Event is something that happened.
type Event struct {
	Kind EventKind
	// Person is the person's id, "" if it is not known.
	Person string
	// Provider is the provider's name.
	Provider string
	// Address is the client's.
	Address netip.Addr
	// Method is how a person who is kept by headgate signed in, "" for others.
	Method string
	// Cause is why it failed, in one line.
	Cause string
	// Who ended a session: "" is the person.
	Who string
}

// Site is an address of an application behind a gate.
type Site struct {
	// Origin is https://HOST, with the port unless it is 443.
	Origin string
	// Host is the name in lower case, Path the path in its one form.
	Host, Path string
	// Wildcard is whether the proxy has the host only by a wildcard.
	Wildcard bool
	// Allow are the people who may enter.
	Allow *Allow
}

// Application is what an application is on the page that lists them.
type Application struct {
	Site
	// Name is what people call it.
	Name string
	// Source is its servers, without the filters of the route.
	Source exchange.Source
	// State returns whether it can be used now.
	State func() AppState
}

// AppState is whether an application can be used.
type AppState int

// The states of an application: no server can answer, or it is closed for maintenance.
const (
	AppActive AppState = iota
	AppDown
	AppMaintenance
)

// Sites finds applications. Its methods may be called by several goroutines at once.
type Sites interface {
	// Site returns the application that has a host, port and path of an https URL, and
	// whether there is one with a gate.
	Site(host string, port int, path string) (Site, bool)
	// Applications returns the applications with a gate at exact hosts, by host, as clients
	// reach them that came to the sign-in page.
	// The slice is not to be changed.
	Applications() []Application
	// SignInHost returns the host of the sign-in page, "" without one, and the numbers of
	// the ports that have it, by the names of the ports; "" has the usual one.
	SignInHost() (host string, ports map[string]int)
}

// Engine knows who is signed in. Its methods may be called by several goroutines at once.
type Engine struct {
	o        Options
	sessions sessions
	tokens   tokens
	links    links
	use      atomic.Pointer[inUse]
	sealer   *seal.Sealer
	people   *people.People
	openings openings
	oldest   atomic.Int64 // sessions that were confirmed earlier do not count on this node now; by the clock of requests

	failures     bucket.Table
	failurePace  bucket.Policy
	failuresSeed bucket.Seed
	exchanges    chan struct{} // places for requests to providers

	signIns, refusals atomic.Uint64

	selfTest selfTest
	icons    *icon.Finder

	stop    context.CancelFunc
	running sync.WaitGroup
}

// inUse is the configuration in use. It is immutable.
type inUse struct {
	config    *Config
	providers []*provider.Provider // by name
	sites     Sites
	people    *people.People
	host      string // of the sign-in page
	ports     map[string]int
	idle, age time.Duration
	// recheck is how often sessions are checked with their provider, grace how long they continue
	// without an answer.
	recheck, grace time.Duration
}

// The limits of signing in.
const (
	// failedSignIns is how many sign-ins from one address may fail in failuresPeriod.
	failedSignIns  = 20
	failuresPeriod = 5 * time.Minute
	// exchangesAtOnce is how many sign-ins are being confirmed by providers at once.
	exchangesAtOnce = 16
)

// New returns an engine with the sessions that the store has. Close ends it.
func New(o Options) *Engine {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		o: o, failurePace: bucket.New(failedSignIns, failuresPeriod, 0), failuresSeed: bucket.NewSeed(),
		exchanges: make(chan struct{}, exchangesAtOnce), icons: icon.New(),
	}
	e.sessions.init()
	e.tokens.init()
	e.links.init()
	e.oldest.Store(math.MinInt64)
	e.use.Store(&inUse{config: &Config{}})
	e.sealer = seal.New(o.Store)
	e.people = people.New(people.Options{Store: o.Store, Log: o.Log, Own: o.Own})
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	after := e.restore(ctx)
	e.people.Start(e.personChanged)
	e.running.Go(func() { e.keep(ctx) })
	e.running.Go(func() { e.recheckLoop(ctx) })
	e.running.Go(func() { e.follow(ctx, after) })
	e.selfTest.changed = make(chan struct{}, 1)
	if o.selfTests == (selfTestPace{}) {
		o.selfTests = usualSelfTests
	}
	e.running.Go(func() { e.selfTestLoop(ctx, o.selfTests) })
	return e
}

// Close writes what is to be kept, and ends what runs.
func (e *Engine) Close() {
	e.stop()
	e.icons.Close()
	e.people.Close()
	e.running.Wait()
	for _, p := range e.use.Load().providers {
		p.Close()
	}
}

// Use takes a configuration into use. Sessions of people whose provider is no longer there,
// or is another one now, do not count while that is so.
func (e *Engine) Use(c *Config, sites Sites) {
	before := e.use.Load()
	next := &inUse{config: c, sites: sites, people: e.people, idle: c.Session.IdleTimeout.D(), age: c.Session.MaxAge.D(),
		recheck: c.Session.Recheck.D(), grace: c.Session.RecheckGrace.D()}
	if sites != nil {
		next.host, next.ports = sites.SignInHost()
	}
	kept := map[*provider.Provider]bool{}
	for _, name := range sortedNames(c.Providers) {
		p := before.same(name, c.Providers[name])
		if p == nil {
			p = provider.Open(name, *c.Providers[name], e.o.Roots)
		}
		kept[p] = true
		next.providers = append(next.providers, p)
	}
	e.use.Store(next)
	for _, p := range before.providers {
		if !kept[p] {
			p.Close()
		}
	}
	e.sessions.recheck(next)
	if next.host != before.host || !maps.Equal(next.ports, before.ports) || c.SelfTest != before.config.SelfTest {
		e.testAgain()
	}
}

// same returns the provider with a name if it has the same settings, else nil.
func (u *inUse) same(name string, c *provider.Config) *provider.Provider {
	if was := u.config.Providers[name]; was == nil || !was.Equal(c) {
		return nil
	}
	return u.provider(name)
}

func (u *inUse) provider(name string) *provider.Provider {
	for _, p := range u.providers {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// Provider is a way to sign in, as the page shows it.
type Provider struct{ Name, Label string }

// Providers returns the ways to sign in.
func (e *Engine) Providers() []Provider {
	var out []Provider
	for _, p := range e.use.Load().providers {
		out = append(out, Provider{p.Name(), p.Label()})
	}
	return out
}

// Headers returns the fields that servers get, of the configuration in use.
func (e *Engine) Headers() *Headers { return &e.use.Load().config.Headers }

// Counts returns how many sessions there are, and how many sign-ins succeeded and failed.
func (e *Engine) Counts() (sessions int, signIns, failed uint64) {
	return e.sessions.count(), e.signIns.Load(), e.refusals.Load()
}

// Errors of signing in. The page has a text for each.
var (
	// ErrUnavailable is wrapped when a provider, or the store, cannot be used now.
	ErrUnavailable = errors.New("signing in is not possible at the moment")
	// ErrThrottled is of an address with too many failed sign-ins.
	ErrThrottled = errors.New("too many failed sign-ins")
	// ErrExpired is of a sign-in that was not started in this browser, took too long, or
	// was used already.
	ErrExpired = errors.New("the sign-in is not known, or took too long")
	// ErrRefused is of a sign-in that the provider did not confirm.
	ErrRefused = errors.New("the provider did not confirm the sign-in")
)

// providerTimeout bounds what a request waits for a provider, redirects of discovery and
// keys included.
const providerTimeout = 20 * time.Second

// Start returns the page of a provider to which a browser is sent, and the cookie that it
// has to bring back. Base is the origin of the sign-in page.
func (e *Engine) Start(name, base string, from netip.Addr, back Return) (location string, cookie Cookie, err error) {
	p := e.use.Load().provider(name)
	if p == nil {
		return "", Cookie{}, ErrExpired
	}
	if e.tooMany(from) {
		return "", Cookie{}, ErrThrottled
	}
	done, err := e.place()
	if err != nil {
		return "", Cookie{}, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), providerTimeout)
	defer cancel()
	location, pending, err := p.Start(ctx, callback(base, name))
	if err != nil {
		e.o.Log.Warn("cannot reach the sign-in provider", "provider", name, "error", err)
		return "", Cookie{}, ErrUnavailable
	}
	cookie, err = e.seal(waiting{Provider: name, Pending: pending, Return: back, Until: e.time().Add(PendingAge)})
	return location, cookie, err
}

// callback is the address that a provider sends browsers back to.
func callback(base, name string) string { return base + "/callback/" + name }

// place waits for a place among the requests to providers. It returns what gives it back.
func (e *Engine) place() (done func(), err error) {
	select {
	case e.exchanges <- struct{}{}:
		return func() { <-e.exchanges }, nil
	default:
		return nil, ErrUnavailable
	}
}

// tooMany reports whether too many sign-ins from an address have failed.
func (e *Engine) tooMany(a netip.Addr) bool {
	if !a.IsValid() {
		return false
	}
	_, wait := e.failures.Admit(e.failuresSeed.Address(a.Unmap()), clock.Now(), &e.failurePace, true)
	return wait > 0
}

// failed notes that a sign-in has failed.
func (e *Engine) failed(ev Event, err error) {
	e.refusals.Add(1)
	if ev.Address.IsValid() {
		e.failures.Admit(e.failuresSeed.Address(ev.Address.Unmap()), clock.Now(), &e.failurePace, false)
	}
	ev.Kind, ev.Cause = SignInFailed, err.Error()
	e.publish(ev)
}

func (e *Engine) publish(ev Event) {
	if e.o.Publish != nil {
		e.o.Publish(ev)
	}
}

// Finish ends a sign-in through a provider: it returns the new session's secret, and where
// the browser wanted to go. The cookie of the sign-in is used up in any case. Old is the
// secret of the session that the browser had, which ends.
func (e *Engine) Finish(name, base string, c *Client, response url.Values, old string) (secret string, s *Session, back Return, used string, err error) {
	w, used, err := e.unseal(c.Cookies.Pending, response.Get("state"))
	if err != nil || w.Provider != name {
		return "", nil, Return{}, used, ErrExpired
	}
	p := e.use.Load().provider(name)
	if p == nil {
		return "", nil, w.Return, used, ErrExpired
	}
	name = p.Name() // it was a view of the request, which what is reported outlives
	if e.tooMany(c.Address) {
		return "", nil, w.Return, used, ErrThrottled
	}
	done, err := e.place()
	if err != nil {
		return "", nil, w.Return, used, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), providerTimeout)
	defer cancel()
	id, err := p.Finish(ctx, callback(base, name), w.Pending, response)
	if err != nil {
		e.o.Log.Warn("sign-in failed", "provider", name, "client_ip", c.Address.String(), "error", err)
		if errors.Is(err, provider.ErrUnavailable) {
			return "", nil, w.Return, used, ErrUnavailable
		}
		e.failed(Event{Provider: name, Address: c.Address}, err)
		return "", nil, w.Return, used, ErrRefused
	}
	secret, s, err = e.createSession(newPerson(name, id), p.Issuer(), id.Grant, c, old)
	if err != nil {
		return "", nil, w.Return, used, err
	}
	e.updateTokens(s.Person(), s.Issuer())
	e.signIns.Add(1)
	e.publish(Event{Kind: SignedIn, Person: s.Person().ID, Provider: name, Address: c.Address})
	return secret, s, w.Return, used, nil
}

// Client is who a request comes from.
type Client struct {
	// Address is the client's address.
	Address netip.Addr
	// Agent is what the browser reports about itself.
	Agent string
	// Cookies are headgate's cookies in the request.
	Cookies *Cookies
}
