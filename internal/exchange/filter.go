package exchange

import (
	"log/slog"
	"time"

	"headgate/internal/file"
)

// Filter is what a feature compiles to. Either func may be nil. A filter keeps
// no pointer to the exchange.
type Filter struct {
	// Name is the feature's name, such as "rewrite", for Explain and golden tests.
	Name string
	// Request looks at a request before there is a response. A non-nil Answer
	// ends the way in: no later filter sees the request and no source is
	// asked.
	Request func(*Exchange) *Answer
	// Response looks at every response on its way out, also at our own
	// answers, in the reverse order of the request. It is called for exactly
	// those filters that saw the request.
	Response func(*Exchange)
	// Owned is the set of headers that the filter owns in requests and responses; nil means
	// none.
	Owned *Owned
}

// Does reports whether the filter does anything.
func (f *Filter) Does() bool { return f.Request != nil || f.Response != nil }

// Source makes the response: servers, a cache, a fixed answer. It sets
// ex.Response, or returns an Answer that says why it could not.
type Source interface {
	// Respond answers ex. It is called by many goroutines at once.
	Respond(ex *Exchange) *Answer
	// Describe returns the source in a word or two for Explain, such as
	// "upstream(2)".
	Describe() string
}

// Env is what a feature can use when it is compiled.
type Env struct {
	// Log is the application's log.
	Log *slog.Logger
	// Clock returns the time; tests put their own here.
	Clock func() time.Time
	// Source returns a source for requests to one URL, such as an auth server's, over
	// connections like those to servers. The URL's path is the base path of the requests;
	// the Host is the URL's own. The error describes an invalid URL, as target.Parse does.
	Source func(url string) (Source, error)
	// File returns a file that the settings name, as it was loaded before the
	// compile; a room that reads files says which by the method
	// Files() []file.Wanted of its settings. The error says why the file could not be loaded.
	File func(name string) (*file.Followed, error)
	// Addresses are the lists and geo databases that settings refer to.
	Addresses Addresses
	// Note adds a note for operators, for when the plan is taken into use.
	Note func(Note)
	// Scope names whose settings are compiled: "proxy shop", or "proxy shop, route
	// /api". Routes that have settings from their proxy share what is compiled of
	// them, and its scope is the proxy.
	Scope string
	// Route is the route that the settings are compiled for. It is set for rooms that
	// compile anew for each route.
	Route Route
	// SecurePorts are the numbers of the https ports that clients of the proxy are
	// sent to, by the name of the http port that they came to.
	SecurePorts map[string]int
	// Standing is called when the state of a server of a proxy changes. It only records the
	// notification. It may be nil.
	Standing func(proxy string)
	// Holds knows the servers that operators can hold.
	Holds Holds
	// Keep is what the function Keep makes its keys for: it returns what was kept
	// under the key, or else what open makes. Key names the thing and
	// everything its state depends on, so that equal settings give equal keys.
	Keep func(key string, open func() Kept) Kept
}

// Route is what a room may know of the route that it acts on.
type Route struct {
	// Prefix is the route's path without a slash at its end.
	Prefix string
	// Strip is whether it is stripped.
	Strip bool
	// Servers are the route's servers.
	Servers []RouteServer
}

// RouteServer is one server of a route, as the way back needs it.
type RouteServer struct {
	// URL is what Exchange.Server says when it answered.
	URL string
	// Authority is the Host that it gets in the place of the client's, "" when
	// it gets the client's.
	Authority string
	// Base is its base path, "/" for none.
	Base string
}

// Note is what an operator should know about a valid configuration: it is logged when the
// plan is taken into use.
type Note struct {
	// Level is the log level.
	Level slog.Level
	// Text is the message, Attrs what it is about, as slog has them.
	Text  string
	Attrs []any
}

// Carried is state that outlives the process, too: a process that is replaced gives it to
// the new one.
type Carried interface {
	Kept
	// Export returns the state, nil for none. It is in use meanwhile.
	Export() []byte
	// Import accepts what Export returned in another process, perhaps of another version.
	// It is called on a new value, before that is used, and ignores what it cannot read.
	Import(data []byte)
}

// Kept is state that outlives a plan: rate buckets, pools, a cache.
type Kept interface {
	// Retire is called once, when no current plan uses the state any more.
	// Exchanges under way may still be using it: it stops what runs in the
	// background and frees what is idle.
	Retire()
}
