package gate

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"headgate/internal/clock"
	"headgate/internal/gate/provider"
	"headgate/internal/setting/unit"
	"headgate/internal/store/memory"
)

// checked is an engine with a provider that issues refresh tokens.
type checked struct {
	*Engine
	oidc      *mockoidc.MockOIDC
	config    Config
	refreshes atomic.Int32 // requests with a refresh token
	events    chan Event
}

func startChecked(t *testing.T, o Options) *checked {
	t.Helper()
	m, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &checked{oidc: m, events: make(chan Event, 64)}
	if err := m.AddMiddleware(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
			if rq.ParseForm() == nil && rq.Form.Get("grant_type") == "refresh_token" && rq.Form.Get("client_id") != "" {
				c.refreshes.Add(1)
			}
			next.ServeHTTP(w, rq)
		})
	}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(l, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Shutdown() })
	c.config = Config{Providers: map[string]*provider.Config{"company": {
		Issuer: m.Issuer(), ClientID: m.Config().ClientID, ClientSecret: m.Config().ClientSecret, Scopes: []string{"profile", "email", "groups"}, GroupsClaim: "groups",
	}}}
	c.config.Session = Lifetime{IdleTimeout: unit.Duration(time.Hour), MaxAge: unit.Duration(24 * time.Hour), Recheck: 1, RecheckGrace: unit.Duration(time.Hour)}
	if o.Store == nil {
		o.Store = memory.NewAhead(3 * time.Hour)
	}
	o.Publish = func(e Event) { c.events <- e }
	c.Engine = c.node(t, o)
	return c
}

// node returns another engine with the same configuration.
func (c *checked) node(t *testing.T, o Options) *Engine {
	e := New(o)
	t.Cleanup(e.Close)
	e.Use(&c.config, nil)
	return e
}

// signIn signs a person in through the provider.
func (c *checked) signIn(t *testing.T, user *mockoidc.MockUser) *Session {
	t.Helper()
	const base = "https://login.example.com"
	c.oidc.QueueUser(user)
	location, cookie, err := c.Start("company", base, netip.Addr{}, Return{})
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	rs, err := client.Get(location)
	if err != nil {
		t.Fatal(err)
	}
	rs.Body.Close()
	back, err := url.Parse(rs.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	_, s, _, _, err := c.Finish("company", base, &Client{Cookies: &Cookies{Pending: []Cookie{cookie}}}, back.Query(), "")
	if err != nil {
		t.Fatal(err)
	}
	if e := <-c.events; e.Kind != SignedIn {
		t.Fatalf("event %+v", e)
	}
	return s
}

// check checks the sessions that are due.
func (c *checked) check(t *testing.T) { c.recheckDue(t.Context(), map[string]int64{}) }

func annAtProvider() *mockoidc.MockUser {
	return &mockoidc.MockUser{Subject: "42", Email: "ann@example.com", EmailVerified: true, Groups: []string{"staff"}}
}

// A person who has left a group loses it within recheck, on all nodes and in tokens.
func TestGroupsFollowTheProvider(t *testing.T) {
	shared := memory.NewAhead(3 * time.Hour)
	c := startChecked(t, Options{Store: shared})
	other := c.node(t, Options{Store: shared})
	user := annAtProvider()
	s := c.signIn(t, user)
	if _, _, err := c.CreateToken(NewToken{Name: "phone", Person: "ann@example.com"}, false); err != nil {
		t.Fatal(err)
	}
	user.Groups = []string{"guests"}
	c.check(t)
	if got := s.Person().GroupsField(); got != "company/guests" {
		t.Errorf("groups %q after the check", got)
	}
	if got := c.TokenNamed("phone").Person.GroupsField(); got != "company/guests" {
		t.Errorf("groups of the token %q", got)
	}
	until(t, "the other node does not learn the groups", func() bool {
		o := other.Session(s.ID())
		return o != nil && o.Person().GroupsField() == "company/guests"
	})
	c.check(t) // with the token of the first check
	if s.Ended() || c.refreshes.Load() != 2 {
		t.Errorf("ended %v after %d refreshes", s.Ended(), c.refreshes.Load())
	}
}

// A session ends at once when the provider rejects its refresh token.
func TestARejectedRefreshTokenEndsTheSession(t *testing.T) {
	c := startChecked(t, Options{})
	s := c.signIn(t, annAtProvider())
	c.oidc.QueueError(&mockoidc.ServerError{Code: 400, Error: mockoidc.InvalidGrant})
	c.check(t)
	if !s.Ended() || c.Session(s.ID()) != nil {
		t.Fatal("the session goes on")
	}
	if e := <-c.events; e.Kind != SignedOut || e.Person != "company/42" || !strings.Contains(e.Cause, "invalid_grant") {
		t.Errorf("event %+v", e)
	}
	if _, err := c.o.Store.Get(t.Context(), grantKey(s.key)); err == nil {
		t.Error("the refresh token is kept")
	}
}

// A provider that is away is tolerated until recheck_grace is over. It is not asked again for each
// session.
func TestAProviderThatIsAwayIsTolerated(t *testing.T) {
	c := startChecked(t, Options{})
	s := c.signIn(t, annAtProvider())
	for _, broken := range []*mockoidc.ServerError{{Code: 503, Error: "temporarily_unavailable"}, {Code: 401, Error: mockoidc.InvalidClient}} {
		c.oidc.QueueError(broken)
		before := s.confirmed.Load()
		c.check(t)
		if s.Ended() || s.confirmed.Load() != before {
			t.Fatalf("ended %v, or confirmed, with %v", s.Ended(), broken)
		}
	}
	second := c.signIn(t, annAtProvider())
	c.oidc.Shutdown()
	away := map[string]int64{}
	c.recheckDue(t.Context(), away)
	if s.Ended() || len(away) != 1 {
		t.Fatalf("ended %v, away %v", s.Ended(), away)
	}
	c.config.Session.RecheckGrace = 1
	c.Use(&c.config, nil)
	c.recheckDue(t.Context(), away)
	if !s.Ended() || !second.Ended() {
		t.Error("the sessions go on after recheck_grace")
	}
}

// Providers take a refresh token that comes twice for a stolen one: only one node uses it.
func TestARefreshTokenIsUsedByOneNode(t *testing.T) {
	shared := memory.NewAhead(3 * time.Hour)
	c := startChecked(t, Options{Store: shared})
	nodes := []*Engine{c.Engine, c.node(t, Options{Store: shared}), c.node(t, Options{Store: shared})}
	s := c.signIn(t, annAtProvider())
	for _, e := range nodes {
		until(t, "a node does not know the session", func() bool { return e.Session(s.ID()) != nil })
	}
	c.config.Session.Recheck = unit.Duration(time.Hour)
	for _, e := range nodes {
		e.Use(&c.config, nil)
		own := e.Session(s.ID())
		own.confirmed.Store(clock.Now() - int64(2*time.Hour))
	}
	var all sync.WaitGroup
	for _, e := range nodes {
		all.Go(func() { e.recheckDue(context.Background(), map[string]int64{}) })
	}
	all.Wait()
	if n := c.refreshes.Load(); n != 1 {
		t.Fatalf("%d refreshes, want 1", n)
	}
	// What one node has confirmed is due on none.
	for _, e := range nodes {
		until(t, "a node does not learn that the session was confirmed", func() bool { return !e.Session(s.ID()).due(clock.Now(), time.Hour) })
	}
	before := c.refreshes.Load()
	for _, e := range nodes {
		e.recheckDue(t.Context(), map[string]int64{})
	}
	if n := c.refreshes.Load(); n != before {
		t.Errorf("%d refreshes of a session that was confirmed", n-before)
	}
}

// A claim keeps other nodes from using the refresh token until it is over.
func TestAClaimedGrantIsLeftAlone(t *testing.T) {
	c := startChecked(t, Options{})
	s := c.signIn(t, annAtProvider())
	g, _, err := c.claimGrant(t.Context(), s)
	if err != nil || g.Token == "" {
		t.Fatalf("not claimed: %v", err)
	}
	c.check(t)
	if n := c.refreshes.Load(); n != 0 || s.Ended() {
		t.Errorf("%d refreshes, ended %v", n, s.Ended())
	}
}

// A refresh token with a short lifetime is used before it ends.
func TestShortRefreshTokensAreUsedInTime(t *testing.T) {
	var s Session
	if s.confirmed.Store(1); s.due(int64(2*time.Hour), time.Hour) {
		t.Error("a session without a refresh token is due")
	}
	s.refreshes.Store(true)
	if s.due(int64(59*time.Minute), time.Hour) || !s.due(int64(61*time.Minute), time.Hour) || s.due(int64(61*time.Minute), 0) {
		t.Error("recheck is not kept")
	}
	s.refreshFor.Store(1800)
	if s.due(int64(14*time.Minute), time.Hour) || !s.due(int64(16*time.Minute), time.Hour) {
		t.Error("half of the lifetime is not kept")
	}
}

// A node that does not know for how long what others write accepts only sessions that were
// confirmed since.
func TestADetachedNodeRefusesOldSessions(t *testing.T) {
	var detached atomic.Int64
	c := startChecked(t, Options{Detached: func() time.Duration { return time.Duration(detached.Load()) }})
	c.config.Session.Recheck = unit.Duration(time.Hour)
	c.Use(&c.config, nil)
	old, young := c.signIn(t, annAtProvider()), c.signIn(t, annAtProvider())
	old.confirmed.Store(clock.Now() - int64(90*time.Minute))
	for _, at := range []struct {
		detached time.Duration
		old      bool
	}{{0, true}, {30 * time.Minute, true}, {2 * time.Hour, false}, {0, true}} {
		detached.Store(int64(at.detached))
		c.noteDetached()
		if got := c.touch(old, clock.Now()) != nil; got != at.old {
			t.Errorf("detached for %v: the old session counts: %v", at.detached, got)
		}
		if c.touch(young, clock.Now()) == nil {
			t.Errorf("detached for %v: the young session does not count", at.detached)
		}
	}
}
