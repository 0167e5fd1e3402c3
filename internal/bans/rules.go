package bans

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/ipset"
)

// Rules are the rules of one configuration, compiled. They are immutable but for what they
// count, and may be used by several goroutines at once.
type Rules struct {
	engine   *Engine
	counters *counters
	rules    []*rule
	// reasons, statuses, exact and prefixes are what any condition looks at: nearly every
	// response is none of it.
	reasons  uint64
	statuses statuses
	exact    map[string]struct{}
	prefixes []string
	// observing are the rules that observe.
	observing []*state
	// locator says where clients are; nil without geo databases.
	locator exchange.Locator
}

// rule is one rule.
type rule struct {
	name       string
	settings   *Config
	exempt     *ipset.Matcher
	conditions []*condition
	state      *state
	piece      int64 // of within, in nanoseconds
}

// condition is one condition of a rule.
type condition struct {
	number   uint64 // tells it from all others
	reason   exchange.Reason
	statuses *statuses // nil for any
	exact    map[string]struct{}
	prefixes []string
	paths    bool
	count    int
}

// statuses is a set of status codes from 400 to 599.
type statuses [4]uint64

func (s *statuses) add(code int) { s[(code-400)/64] |= 1 << ((code - 400) % 64) }

func (s *statuses) has(code int) bool {
	at := uint(code - 400)
	return at < 200 && s[at/64]>>(at%64)&1 == 1
}

// state is what a rule has counted since it was written as it is. It outlives plans.
type state struct {
	since    time.Time
	requests atomic.Uint64
	bans     atomic.Uint64

	mu struct {
		sync.Mutex
		would map[hostKey]*Would
		more  int // that there was no room for
	}
}

// Retire is for exchange.Keep: a state holds nothing but memory.
func (s *state) Retire() {}

// Would is a client that a rule which observes would have banned.
type Would struct {
	// Network is the client's address, or its IPv6 /64.
	Network string `json:"network"`
	// Since is when the ban would have begun.
	Since time.Time `json:"since"`
	// Until is when it would have ended.
	Until time.Time `json:"until"`
	// Why is what it would have been for.
	Why string `json:"why"`
	// Times is how often it would have been banned.
	Times int `json:"times"`
	// SignedIn is whether a person signed in from the address within 24 hours.
	SignedIn bool `json:"signed_in"`
}

// maxWould is how many clients a rule that observes remembers.
const maxWould = 10_000

// Compile returns the rules of a configuration; nil without any. Settings that were
// checked give no error.
func Compile(settings map[string]*Config, engine *Engine, env exchange.Env) (*Rules, error) {
	if len(settings) == 0 || engine == nil {
		return nil, nil
	}
	r := &Rules{engine: engine, exact: map[string]struct{}{}, locator: env.Addresses.Locator}
	r.counters = exchange.Keep(env, "counters of bans", nil, openCounters)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		one, err := r.compile(name, settings[name], env)
		if err != nil {
			return nil, fmt.Errorf("bans.%s: %w", name, err)
		}
		r.rules = append(r.rules, one)
		if one.settings.Mode == Observe {
			r.observing = append(r.observing, one.state)
		}
	}
	return r, nil
}

func (r *Rules) compile(name string, c *Config, env exchange.Env) (*rule, error) {
	exempt, err := ipset.Compile(c.Exempt, env.Addresses)
	if err != nil {
		return nil, err
	}
	one := &rule{name: name, settings: c, exempt: exempt, piece: max(int64(c.Within.D())/slots, 1)}
	one.state = exchange.Keep(env, "ban rule "+name, c, func() *state { return &state{since: env.Clock()} })
	for i := range c.When {
		one.conditions = append(one.conditions, r.condition(name, i, c))
	}
	return one, nil
}

func (r *Rules) condition(name string, i int, c *Config) *condition {
	w := &c.When[i]
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%v\n%+v", name, c.Within, *w))
	out := &condition{number: binary.BigEndian.Uint64(sum[:]), count: w.Count, exact: map[string]struct{}{}, paths: len(w.Path) > 0}
	if w.Reason != "" {
		out.reason, _ = reasonOf(w.Reason)
		r.reasons |= 1 << out.reason
	}
	if len(w.Status) > 0 {
		out.statuses = &statuses{}
		for _, code := range w.Status {
			out.statuses.add(code)
			r.statuses.add(code)
		}
	}
	for _, p := range w.Path {
		if begin, many := strings.CutSuffix(p, "*"); many {
			out.prefixes = append(out.prefixes, begin)
			r.prefixes = append(r.prefixes, begin)
		} else {
			out.exact[p] = struct{}{}
			r.exact[p] = struct{}{}
		}
	}
	return out
}

// concerns reports whether any condition may be met.
func (r *Rules) concerns(ex *exchange.Exchange) bool {
	if r.reasons>>ex.Reason&1 == 1 && ex.Reason != exchange.None || r.statuses.has(ex.Response.Status) {
		return true
	}
	if len(r.exact) > 0 {
		if _, asked := r.exact[ex.Request.Path]; asked {
			return true
		}
	}
	for _, p := range r.prefixes {
		if strings.HasPrefix(ex.Request.Path, p) {
			return true
		}
	}
	return false
}

// met reports whether a request meets a condition.
func (c *condition) met(ex *exchange.Exchange) bool { return c.concerns(ex) && c.credentialsMatch(ex) }

// concerns reports whether a request meets a condition, if it had credentials.
func (c *condition) concerns(ex *exchange.Exchange) bool {
	if c.reason != exchange.None && ex.Reason != c.reason || c.statuses != nil && !c.statuses.has(ex.Response.Status) {
		return false
	}
	return !c.paths || c.matchesPath(ex.Request.Path)
}

// credentialsMatch reports whether a request had credentials, where it counts only with them.
func (c *condition) credentialsMatch(ex *exchange.Exchange) bool {
	return ex.Response.Status != 401 || c.credentials(ex)
}

func (c *condition) matchesPath(path string) bool {
	if _, asked := c.exact[path]; asked {
		return true
	}
	return slices.ContainsFunc(c.prefixes, func(p string) bool { return strings.HasPrefix(path, p) })
}

// credentials reports whether a request that got 401 had any. Programs such as git and
// clients of WebDAV ask without at first, and so does a browser with an image on a page
// of a stranger.
func (c *condition) credentials(ex *exchange.Exchange) bool {
	return ex.Request.Header.Has(header.Authorization) || c.paths && ex.Request.Method == "POST"
}

func has(list *header.List, name string) bool {
	_, there := list.Lookup(name)
	return there
}

// acmePath is below which authorities ask.
const acmePath = "/.well-known/acme-challenge/"

// innocent reports whether a request is never counted.
func innocent(ex *exchange.Exchange) bool {
	rq := &ex.Request
	switch {
	case ex.Reason == exchange.Banned, ex.Reason == exchange.CORSPreflight, ex.Reason == exchange.ACMEChallenge, strings.HasPrefix(rq.Path, acmePath):
		return true
	case rq.Method == "OPTIONS" && has(&rq.Header, "Access-Control-Request-Method"):
		return true
	case (ex.User != "" || ex.Personal) && ex.Response.Status < 500:
		return true // who signed in may mistype an address
	}
	// A page of another site can make its reader's browser ask for anything: what the
	// browser says was not the reader's doing is not counted.
	site, there := rq.Header.Lookup("Sec-Fetch-Site")
	if !there || site != "cross-site" {
		return false
	}
	mode, _ := rq.Header.Lookup("Sec-Fetch-Mode")
	return mode != "navigate"
}

// count counts a response, and bans the client that was counted too often. Source is who
// says that the client has its address.
func (r *Rules) count(ex *exchange.Exchange, source Source) {
	for _, s := range r.observing {
		s.requests.Add(1)
	}
	if ex.User != "" || ex.Personal {
		r.engine.seen.mark(keyOf(ex.ClientIP, Peer), ex.Times.Start)
	}
	if !r.concerns(ex) || innocent(ex) {
		return
	}
	for _, one := range r.rules {
		for _, c := range one.conditions {
			if c.met(ex) {
				r.met(one, c, ex, source)
			}
		}
	}
}

// met counts a request that met a condition.
func (r *Rules) met(one *rule, c *condition, ex *exchange.Exchange, source Source) {
	a := ex.ClientIP
	if !a.IsValid() {
		return
	}
	k, now := keyOf(a, source), r.engine.o.Clock()
	why := r.counted(r.counters, one, c, ex, k, ex.Times.Start, now)
	switch {
	case why == "":
	case one.settings.Mode == Observe:
		one.state.note(k, a, why, now, one.settings, r.engine.seen.lately(keyOf(a, Peer)))
	default:
		one.state.bans.Add(1)
		r.engine.banByRule(one, networkOf(a), source, why, now)
	}
}

// counted counts a request that met a condition, at a moment in nanoseconds that is now. It
// returns why the client is to be banned, "" if it is not.
func (r *Rules) counted(in *counters, one *rule, c *condition, ex *exchange.Exchange, k hostKey, moment int64, now time.Time) string {
	a := ex.ClientIP
	if one.exempt.Has(ex) || r.engine.protected.why(networkOf(a), one.settings.IncludePrivate) != "" || r.engine.pardoned(a) {
		return ""
	}
	n := in.add(c, k, in.slotOf(moment, one.piece))
	if n.total < c.count {
		return ""
	}
	in.forget(c, k)
	since := now.Add(-time.Duration(n.oldest * one.piece))
	return fmt.Sprintf("%d × %s since %s", n.total, c.what(ex), since.UTC().Format("15:04"))
}

// what says what of a request met the condition.
func (c *condition) what(ex *exchange.Exchange) string {
	switch {
	case c.paths:
		return shorten(ex.Request.Path)
	case c.reason != exchange.None:
		return c.reason.String()
	}
	return fmt.Sprintf("status %d", ex.Response.Status)
}

func shorten(path string) string {
	if len(path) > 64 {
		return strings.ToValidUTF8(path[:64], "") + "…"
	}
	return strings.Clone(path)
}

// note notes whom the rule would ban.
func (s *state) note(k hostKey, a ipAddr, why string, now time.Time, c *Config, signedIn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.would == nil {
		s.mu.would = map[hostKey]*Would{}
	}
	w := s.mu.would[k]
	if w == nil {
		if len(s.mu.would) >= maxWould {
			s.mu.more++
			return
		}
		w = &Would{Network: Display(networkOf(a))}
		s.mu.would[k] = w
	}
	if now.Before(w.Until) {
		return // it would be banned
	}
	w.Times++
	w.Since, w.Until, w.Why = now, now.Add(c.Ban.of(w.Times)), why
	w.SignedIn = signedIn
}

// would returns whom the rule would ban, the latest first, and how many there was no room
// for. SignedIn reports whether a client signed in since it was noted.
func (s *state) would(signedIn func(hostKey) bool) (all []Would, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, w := range s.mu.would {
		w.SignedIn = w.SignedIn || signedIn(k)
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b Would) int { return b.Since.Compare(a.Since) })
	return all, s.mu.more
}

// RuleState is what a rule has done.
type RuleState struct {
	// Name is the name of the rule.
	Name string `json:"name"`
	// Mode is observe or enforce.
	Mode string `json:"mode"`
	// Since is when the rule was written as it is, or headgate was started.
	Since time.Time `json:"since"`
	// Requests is how many requests it has looked at since, of a rule that observes.
	Requests int `json:"requests,omitempty"`
	// Bans is how many bans it has made since, or would have made.
	Bans int `json:"bans"`
	// Addresses is how many clients a rule that observes would have banned.
	Addresses int `json:"addresses"`
	// SignedIn is how many of these have signed in within 24 hours.
	SignedIn int `json:"signed_in"`
	// Would are these clients, the latest first: at most 100.
	Would []Would `json:"would,omitempty"`
	// Summary says it in words.
	Summary string `json:"summary"`
}

// maxShown is how many clients RuleState has.
const maxShown = 100

// States returns what the rules have done, by name. r may be nil.
func (r *Rules) States() []RuleState {
	out := []RuleState{}
	if r == nil {
		return out
	}
	for _, one := range r.rules {
		out = append(out, one.stateNow(r.engine))
	}
	return out
}

func (r *rule) stateNow(e *Engine) RuleState {
	s := RuleState{Name: r.name, Mode: string(r.settings.Mode), Since: r.state.since, Bans: int(r.state.bans.Load())}
	if r.settings.Mode != Observe {
		s.Summary = fmt.Sprintf("since %s: %d bans", moment(s.Since, e.o.Clock()), s.Bans)
		return s
	}
	s.Requests = int(r.state.requests.Load())
	all, more := r.state.would(func(k hostKey) bool { return e.seen.lately(hostKey{k.high, k.low, Peer}) })
	for i := range all {
		s.Bans += all[i].Times
		if all[i].SignedIn {
			s.SignedIn++
		}
	}
	s.Addresses = len(all) + more
	s.Would = all[:min(len(all), maxShown)]
	s.Summary = fmt.Sprintf("since %s, %d requests: %s would be banned; %d of them signed in", moment(s.Since, e.o.Clock()), s.Requests, addressCount(s.Addresses), s.SignedIn)
	return s
}

// addressCount writes a number of addresses.
func addressCount(n int) string {
	if n == 1 {
		return "1 address"
	}
	return fmt.Sprintf("%d addresses", n)
}
