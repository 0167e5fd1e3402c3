// Package api is the management API, which the console, the command line and scripts use.
// New makes a handler for /api/v1/.
//
// All operations are rows of one table (table.go): a row has the method and path, who may
// use it, its input and output, and a sentence that describes it. The handlers, the OpenAPI
// document, the reference page and the test of all refusals are made from the table. What
// applies to every row is in api.go (access), call.go (parameters, preconditions, pages),
// decode.go (bodies) and problem.go (errors).
//
// documents.go and tree.go are the objects of the configuration; change.go is how all of
// them are changed; configuration.go and revisions.go are operations on the whole
// configuration.
//
// It stores nothing: users and tokens are in operator, events in event.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/accesslog/recent"
	"headgate/internal/control"
	"headgate/internal/event"
	"headgate/internal/notice"
	"headgate/internal/operator"
	"headgate/internal/pair"
	"headgate/internal/schema"
	"headgate/internal/store"
	"headgate/internal/upgrade"
)

// Prefix is the path prefix of the API.
const Prefix = "/api/v1"

// Cookie and Header carry the two secrets of a session.
const (
	Cookie = "__Host-headgate"
	Header = "Headgate-Session"
)

// Version describes the program.
type Version struct {
	// Version is that of the program.
	Version string `json:"version"`
	// Go is that of the compiler.
	Go string `json:"go"`
	// API is that of this interface.
	API string `json:"api"`
	// Newer is the version of a newer release; absent if none is known. Without
	// admin.update_check headgate does not look.
	Newer string `json:"newer,omitempty"`
	// Instance is the name of this machine's headgate.
	Instance string `json:"instance,omitempty"`
}

// Options are what the API uses.
type Options struct {
	// Operators authenticates clients.
	Operators *operator.Operators
	// Events is the log of events.
	Events *event.Log
	// Control holds the configuration and changes it. Without one there are no objects.
	Control *control.Control
	// Store keeps certificates where there is no Control.
	Store store.Store
	// Recent returns what holds the last requests, nil if they are not kept now. It may
	// be nil itself.
	Recent func() *recent.Ring

	// Pair is the state of a machine of a pair; nil if it is in none.
	Pair *pair.Store
	// Invitations let machines join the shared database; nil if there is none.
	Invitations *pair.Invitations
	// Notices delivers events to webhooks and people; nil if there are none.
	Notices *notice.Sender
	// Backup writes an archive of the state, sealed if there is a passphrase; nil where
	// that cannot be had.
	Backup func(ctx context.Context, w io.Writer, passphrase string) error
	// Version is returned by /version.
	Version Version
	// Newer returns the version of a newer release, "" if none is known; nil knows none.
	Newer func() string
	// Upgrade replaces the process, and CheckUpgrade checks whether that is possible; nil
	// where the process cannot be replaced.
	Upgrade      func(force bool) (upgrade.Result, error)
	CheckUpgrade func(context.Context) upgrade.Check
	// AdoptStore and PushStore decide about a shared store that was set back; nil refuses.
	AdoptStore, PushStore func(context.Context) error
	// MigrateStore migrates the tables of the shared database, or reports what would be done; nil
	// if there is none. The error is a *store.Outdated if a node runs that could not use them.
	MigrateStore func(ctx context.Context, dry bool) (StoreMigration, error)
	// CheckStore checks the shared database; nil if there is none.
	CheckStore func(context.Context) (StoreCheck, error)
	// Hosts returns the host names that the listener accepts, besides localhost and
	// addresses; nil is none.
	Hosts func() []string
	// Peers queries other machines that share the store, which answer with AnswerNode; nil if
	// there are none.
	Peers Peers
	// Trusted reports whether x-forwarded-for from an address is used; nil trusts no
	// address.
	Trusted func(netip.Addr) bool
	// Passkeys returns the origins of the console at a host name, or the reason why browsers
	// cannot use passkeys there: PasskeyPlain or PasskeyCertificate. Nil offers none.
	Passkeys func(host string) (origins []string, why string)
	// Log receives internal errors.
	Log *slog.Logger
}

// API is the handler. Its methods may be called by several goroutines at once.
type API struct {
	Options
	mux     *http.ServeMux
	rows    []*row
	origins *http.CrossOriginProtection
	streams atomic.Int64
	open    openStreams
	listing atomic.Pointer[listing]
	// heartbeat is how often a stream is kept alive and its client's access is checked.
	heartbeat time.Duration

	trafficNow  trafficCache
	comparisons comparisons
	cutovers    cutovers
	comparing   chan struct{} // a slot for the client that compares revisions
}

// maxStreams is how many streams of events there are at once.
const maxStreams = 2048

// maxStreamsOfOne is how many of them one user or token may have.
const maxStreamsOfOne = maxStreams * 3 / 4

// openStreams counts the streams of those who have some.
type openStreams struct {
	mu sync.Mutex
	of map[string]int // by name; guarded by mu
}

// acquire counts another stream of a user, unless the user has the maximum.
func (o *openStreams) acquire(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[string]int{}
	}
	if o.of[name] >= maxStreamsOfOne {
		return false
	}
	o.of[name]++
	return true
}

func (o *openStreams) release(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[name]--; o.of[name] <= 0 {
		delete(o.of, name)
	}
}

// New returns the API.
func New(o Options) *API {
	a := &API{Options: o, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(), comparing: make(chan struct{}, 1), heartbeat: heartbeat}
	byPath := map[string]map[string]*row{}
	var paths []string
	for _, r := range a.whole() {
		if r.ofNode {
			r.query, r.may = append(slices.Clone(r.query), nodeParameter), append(slices.Clone(r.may), 404, 504)
		}
		if r.tree && r.kind != nil {
			r.input = r.kind.Schema()
			r.in = r.input.Go
		} else if r.in != nil {
			r.input = schema.Describe(r.in)
		}
		a.rows = append(a.rows, &r)
		if byPath[r.path] == nil {
			byPath[r.path] = map[string]*row{}
			paths = append(paths, r.path)
		}
		byPath[r.path][r.method] = &r
	}
	for _, path := range paths {
		a.mux.HandleFunc(Prefix+path, func(w http.ResponseWriter, rq *http.Request) { a.dispatch(w, rq, byPath[path]) })
	}
	return a
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, rq *http.Request) {
	defer a.recover(w, rq)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	err := a.admit(rq)
	if err == nil {
		err = a.frozen(rq)
	}
	if err != nil {
		a.fail(w, rq, err)
		return
	}
	// The mux mends paths by a redirect; here a path is right or it is not.
	if _, pattern := a.mux.Handler(rq); !strings.HasPrefix(pattern, Prefix) || path.Clean(rq.URL.Path) != rq.URL.Path {
		a.fail(w, rq, refuse(operator.CodeNotFound, "", "there is nothing at this path", "the reference page lists all"))
		return
	}
	a.mux.ServeHTTP(w, rq)
}

// admit refuses what no row may see: another host, another site, secrets in the
// address.
func (a *API) admit(rq *http.Request) error {
	if !a.hostAllowed(rq) {
		return refuse("misdirected", "", "this listener does not accept requests for this host", "use its address, or add the host to admin.hosts")
	}
	if err := a.origins.Check(rq); err != nil {
		return refuse("cross_origin", "", "a page of another site may not change anything here", "")
	}
	if rq.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return refuse("cross_origin", "", "a page of another site may not ask here", "")
	}
	for name, values := range rq.URL.Query() {
		if name == "token" || name == "access_token" || slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, operator.TokenPrefix) }) {
			return tokenInURL(clean(name))
		}
	}
	for part := range strings.SplitSeq(rq.URL.Path, "/") {
		if operator.IsToken(part) {
			return tokenInURL("")
		}
	}
	return nil
}

func tokenInURL(parameter string) error {
	return refuseParameter("token_in_url", parameter, "a token in an address is written to logs and histories", "send it in the field Authorization: Bearer, and revoke this one")
}

// hostAllowed refuses names that were made to point here (DNS rebinding). Addresses
// cannot be.
func (a *API) hostAllowed(rq *http.Request) bool {
	if _, local := peerOf(rq.Context()); local {
		return true // browsers do not connect to a socket
	}
	host := rq.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || a.Hosts != nil && slices.Contains(a.Hosts(), host)
}

// dispatch finds the row of a path by its method.
func (a *API) dispatch(w http.ResponseWriter, rq *http.Request, methods map[string]*row) {
	method := rq.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	r := methods[method]
	if r == nil {
		p := refuse("method_not_allowed", "", "this path does not take "+clean(rq.Method), "")
		var allow []string
		for m := range methods {
			allow = append(allow, m)
		}
		slices.Sort(allow)
		p.allow = strings.Join(allow, ", ")
		a.fail(w, rq, p)
		return
	}
	c := &call{api: a, row: r, w: w, rq: rq}
	out, err := a.run(c)
	if err != nil {
		a.fail(w, rq, err)
		return
	}
	if r.stream == nil {
		a.answer(c, out)
	}
}

// run takes a request through the checks of its row, and does it.
func (a *API) run(c *call) (any, error) {
	if c.who, c.unknown = a.identify(c.rq); c.unknown != nil && c.row.access != public {
		return nil, c.unknown
	}
	if err := c.allowed(); err != nil {
		return nil, err
	}
	if err := c.checkQuery(); err != nil {
		return nil, err
	}
	if c.row.match {
		if err := c.precondition(); err != nil {
			return nil, err
		}
	}
	if c.row.input != nil {
		if err := c.body(); err != nil {
			return nil, err
		}
	}
	switch c.text("dry_run") {
	case "true":
		c.dryRun = true
	case "", "false":
	default:
		return nil, refuseParameter("invalid", "dry_run", "must be true or false", "")
	}
	if c.row.stream == nil {
		if node := c.otherNode(); node != "" {
			return a.showNode(c, node)
		}
		return c.row.handle(c)
	}
	if a.streams.Add(1) > maxStreams {
		a.streams.Add(-1)
		return nil, refuse(operator.CodeOverloaded, "", "too many streams are open", "close some")
	}
	defer a.streams.Add(-1)
	if !a.open.acquire(c.who.Name) {
		return nil, refuse(operator.CodeOverloaded, "", "you have too many streams open", "close some of them")
	}
	defer a.open.release(c.who.Name)
	if err := c.row.stream(c); !errors.Is(err, errHeadOnly) {
		return nil, err
	}
	return nil, nil
}

// allowed checks role and scope.
func (c *call) allowed() error {
	if c.row.access == public {
		return nil
	}
	granted := c.row.area == areaAccess && c.mayGrant()
	lower := !granted && !c.who.Role.AtLeast(operator.Role(c.row.access))
	write := c.rq.Method != http.MethodGet && c.rq.Method != http.MethodHead
	if c.row.area == areaAccess && (lower || !c.who.May(areaAccess, write)) {
		return c.noAccess("", "")
	}
	if lower {
		return refuse(operator.CodeForbidden, "", fmt.Sprintf("this needs the role %s, and you have %s", c.row.access, c.who.Role), "")
	}
	if !c.who.May(c.row.area, write) {
		return refuse(operator.CodeForbidden, "", "this needs the scope "+c.row.area, "make a token that has it")
	}
	return nil
}

// mayGrant reports whether an operator decides who passes a gate: an admin, or a token that an
// admin has given the scope.
func (c *call) mayGrant() bool {
	if c.who.Role.AtLeast(operator.Admin) {
		return c.who.May(areaAccess, true)
	}
	return c.who.Role.AtLeast(operator.Editor) && slices.Contains(c.who.Scopes, areaAccess)
}

// Protect serves next to those who have signed in with a role at least, and, if it is a
// token with scopes, the scope of an area. Others are refused as by every row.
func (a *API) Protect(role operator.Role, area string, next http.Handler) http.Handler {
	r := &row{access: access(role), area: area}
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		defer a.recover(w, rq)
		err := a.admit(rq)
		if err == nil {
			c := &call{api: a, row: r, w: w, rq: rq}
			if c.who, err = a.identify(rq); err == nil {
				err = c.allowed()
			}
		}
		if err != nil {
			a.fail(w, rq, err)
			return
		}
		next.ServeHTTP(w, rq)
	})
}

// identify returns who sent a request: from the admin socket, a token or a session. A
// loopback address does not identify anyone.
func (a *API) identify(rq *http.Request) (operator.Identity, error) {
	from := a.addressOf(rq)
	if uid, local := peerOf(rq.Context()); local {
		if Forwarded(rq) {
			return operator.Identity{}, refuse(operator.CodeForbidden, "", "the request came to the admin socket through a proxy", "")
		}
		return operator.Local(uid), nil
	}
	if scheme, token, ok := strings.Cut(rq.Header.Get("Authorization"), " "); ok {
		if !strings.EqualFold(scheme, "Bearer") {
			return operator.Identity{}, refuse(operator.CodeSignedOut, "", "only Bearer is taken in the field Authorization", "")
		}
		if from.IsLoopback() && Forwarded(rq) {
			from = netip.Addr{} // a proxy on this machine; the client behind it is unknown
		}
		return a.Operators.ByToken(rq.Context(), strings.TrimSpace(token), from)
	}
	cookie := cookieOf(rq)
	if cookie == "" {
		return operator.Anonymous(from, "api"), refuse(operator.CodeSignedOut, "", "no session and no token was sent", "sign in, or send a token")
	}
	return a.Operators.BySession(rq.Context(), cookie, rq.Header.Get(Header), from)
}

func cookieOf(rq *http.Request) string {
	if c, err := rq.Cookie(Cookie); err == nil {
		return c.Value
	}
	return ""
}

// answer writes what a handler returned.
func (a *API) answer(c *call, out any) {
	entity := ""
	switch o := out.(type) {
	case object:
		if o.revision() > 0 {
			entity = tag(o.revision())
		}
	case interface{ entityTag() string }:
		entity = o.entityTag()
	}
	if entity != "" {
		c.w.Header().Set("ETag", entity)
		if c.rq.Method == http.MethodGet && c.rq.Header.Get("If-None-Match") == entity {
			c.w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	status := c.row.status
	if c.dryRun && (status == http.StatusCreated || status == http.StatusAccepted) {
		status = http.StatusOK
	}
	if out == nil {
		c.w.WriteHeader(http.StatusNoContent)
		return
	}
	if text, ok := out.(plainText); ok {
		c.w.Write([]byte(text.text))
		return
	}
	body, err := json.Marshal(out)
	if err != nil {
		a.fail(c.w, c.rq, fmt.Errorf("write %s %s as JSON: %w", c.row.method, c.row.path, err))
		return
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	if status != 0 {
		c.w.WriteHeader(status)
	}
	c.w.Write(append(body, '\n'))
}

// fail sends a refusal.
func (a *API) fail(w http.ResponseWriter, rq *http.Request, err error) {
	if errors.Is(err, context.Canceled) && rq.Context().Err() != nil {
		return // the client has gone
	}
	p, internal := problemOf(err)
	if internal {
		a.Log.Error("a request to the API failed", "method", rq.Method, "path", rq.URL.Path, "error", err)
	}
	p.write(w)
}

// recover turns a panic into an answer.
func (a *API) recover(w http.ResponseWriter, rq *http.Request) {
	v := recover()
	if v == nil || v == http.ErrAbortHandler {
		if v != nil {
			panic(v)
		}
		return
	}
	a.Log.Error("panic in a request to the API", "method", rq.Method, "path", rq.URL.Path, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	refuse("internal", "", "internal error; see the log", "").write(w)
}
