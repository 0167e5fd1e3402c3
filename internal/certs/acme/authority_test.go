package acme

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mholt/acmez/v3"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/setting/unit"
	"headgate/internal/store"
	"headgate/internal/store/memory"
)

// authority is an authority, and the ports of the machine under test.
type authority struct {
	*acmetest.Authority
	t       *testing.T
	answers atomic.Pointer[Answers]
	http    *httptest.Server
	https   net.Listener
	ports   fakePorts
	instead Ports         // of ports, for the managers that come; nil for ports
	tell    func(*Record) // for the managers that come
	node    string        // for the managers that come
}

// fakePorts are the ports of the machine under test.
type fakePorts struct {
	httpOpen, httpsOpen atomic.Bool
	http, https         int
}

func (p *fakePorts) OpenHTTP(n int) bool  { return p.httpOpen.Load() && n == p.http }
func (p *fakePorts) OpenHTTPS(n int) bool { return p.httpsOpen.Load() && n == p.https }
func (p *fakePorts) Addresses() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
}

// start starts an authority which asks ports that the test has opened.
func start(t *testing.T, s acmetest.Settings) *authority {
	t.Helper()
	a := &authority{t: t}
	a.startPorts()
	s.HTTPPort, s.HTTPSPort = a.ports.http, a.ports.https
	a.Authority = acmetest.Start(t, s)
	return a
}

// startPorts opens the ports that the authority asks: one answers http-01 from the
// answers of the manager, one tls-alpn-01.
func (a *authority) startPorts() {
	a.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.URL.Path, "/.well-known/acme-challenge/")
		answers := a.answers.Load()
		if !ok || answers == nil || !a.ports.httpOpen.Load() {
			http.NotFound(w, r)
			return
		}
		answer, ok := answers.HTTP(token)
		if !ok {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, answer)
	}))
	a.t.Cleanup(a.http.Close)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		NextProtos: []string{acmez.ACMETLS1Protocol},
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if answers := a.answers.Load(); answers != nil && slices.Contains(h.SupportedProtos, acmez.ACMETLS1Protocol) {
				if c := answers.TLS(h.ServerName); c != nil {
					return c, nil
				}
			}
			return nil, errors.New("nobody has asked for it")
		},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	a.https = listener
	a.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				conn.(*tls.Conn).Handshake()
				conn.Close()
			}()
		}
	}()
	a.ports.http = a.http.Listener.Addr().(*net.TCPAddr).Port
	a.ports.https = listener.Addr().(*net.TCPAddr).Port
	a.ports.httpOpen.Store(true)
	a.ports.httpsOpen.Store(true)
}

// entry returns settings that lead to the authority.
func (a *authority) entry() *Config {
	return &Config{
		Directory: a.Directory, CAFile: a.CAFile, Email: "ops@example.com",
		KeyType: EC256, Challenge: Auto, Resolvers: []string{a.Names}, HTTPPort: a.ports.http, HTTPSPort: a.ports.https, Renew: ByARI,
	}
}

// withDNS returns the entry with dns-01 through the provider httpreq.
func (a *authority) withDNS() *Config {
	e := a.entry()
	e.DNS = &DNS{Provider: "httpreq", Credentials: map[string]string{"endpoint": a.Hooks}, Propagation: unit.Duration(20 * time.Second)}
	return e
}

// under is a manager under test and what it has installed.
type under struct {
	*Manager
	t         *testing.T
	mu        sync.Mutex
	installed map[string]*Issued
	count     int
}

// manager starts a manager over a store. It is closed with the test.
func (a *authority) manager(s store.Store) *under { return a.managerAt(s, quickPace) }

// quickPace has pauses that a test can wait for.
var quickPace = pace{first: 20 * time.Millisecond, most: 200 * time.Millisecond, look: 20 * time.Millisecond, request: requestTimeout, poll: 10 * time.Millisecond}

// managerAt is manager with a pace, which has to stand before the start.
func (a *authority) managerAt(s store.Store, p pace) *under {
	u := &under{t: a.t, installed: map[string]*Issued{}}
	ports := a.instead
	if ports == nil {
		ports = &a.ports
	}
	u.Manager = New(Options{
		Log: slog.New(slog.NewTextHandler(a.t.Output(), nil)), Store: s, Ports: ports, Node: a.node, Agent: "headgate/test", Tell: a.tell,
		Install: func(i *Issued) {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.installed[i.Name] = i
			u.count++
		},
	})
	u.pace = p
	a.answers.Store(u.Answers())
	u.Start()
	a.t.Cleanup(u.Close)
	return u
}

// setWanted sets what is wanted: one certificate for each group.
func (u *under) setWanted(e *Config, groups ...[]string) {
	var wants []Want
	for _, g := range groups {
		wants = append(wants, Want{Entry: "main", Settings: e, Names: g})
	}
	u.Set(map[string]*Config{"main": e}, wants)
}

// patience is how long anything may take in tests on a busy machine.
const patience = 60 * time.Second

// until waits for a record that fits.
func (u *under) until(name, what string, fits func(*Record) bool) *Record {
	u.t.Helper()
	var r *Record
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, r = range u.Records() {
			if r.Name == name && fits(r) {
				return r
			}
		}
	}
	data, _ := json.MarshalIndent(r, "", " ")
	u.t.Fatalf("%s: not %s in %v: %s", name, what, patience, data)
	return nil
}

func (u *under) state(name string, s State) *Record {
	u.t.Helper()
	return u.until(name, string(s), func(r *Record) bool { return r.State == s })
}

// certificate returns what was installed under a name. A certificate is installed a moment
// after its record says that it is valid.
func (u *under) certificate(name string) *Issued {
	u.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		u.mu.Lock()
		issued := u.installed[name]
		u.mu.Unlock()
		if issued != nil {
			return issued
		}
	}
	u.t.Fatalf("%s was not installed", name)
	return nil
}

// faulty is a store in memory whose commits can be refused and watched.
type faulty struct {
	*memory.Store
	mu     sync.Mutex
	before func(store.Change) error // may refuse a commit
	after  func(store.Change)
}

func newStore() *faulty { return &faulty{Store: memory.New()} }

func (f *faulty) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		if err := f.before(c); err != nil {
			return 0, err
		}
	}
	r, err := f.Store.Commit(ctx, c)
	if err == nil && f.after != nil {
		f.after(c)
	}
	return r, err
}

func (f *faulty) has(key string) bool {
	_, err := f.Get(context.Background(), key)
	return err == nil
}
