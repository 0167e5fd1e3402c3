package lists

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/file"
	"headgate/internal/setting/ipset"
)

// List is a list in use. Its content changes while it is used; Contains takes no lock.
type List struct {
	// constant
	name     string
	settings *Config
	dir      string // where relative paths begin
	o        *Options
	log      *slog.Logger

	content atomic.Pointer[content]

	stamp file.Stamp // of the file that was read last; owned by load, then by the runner

	stop context.CancelFunc // nil until it was started
	done chan struct{}

	mu struct {
		sync.Mutex
		state State
		told  bool // that the list was loaded, by an event
		stale bool // that it is stale, by an event
	}
}

// content is what a list has at a moment. It is not changed.
type content struct {
	set *ipset.Set
	// all says that every address counts as listed: a CrowdSec engine cannot be reached
	// and on_failure is deny.
	all bool
}

// State is the state of a list.
type State struct {
	// Name is the name of the list.
	Name string `json:"name"`
	// Source is where the entries come from: entries, url, file or crowdsec.
	Source string `json:"source"`
	// Location is the URL or file, without credentials and query.
	Location string `json:"location,omitempty"`
	// State is loading until the entries were loaded for the first time, ready, or error when
	// they could not be loaded: then the last entries that could are used.
	State string `json:"state"`
	// Since is when it came to this state.
	Since time.Time `json:"since"`
	// Entries is how many addresses and networks the list has.
	Entries int `json:"entries"`
	// Loaded is when its entries were loaded last; absent if they never were.
	Loaded time.Time `json:"loaded,omitzero"`
	// Checked is when its source was asked last; absent for lists without a source to ask.
	Checked time.Time `json:"checked,omitzero"`
	// Next is when its source will be asked next.
	Next time.Time `json:"next,omitzero"`
	// Names are the host names in its entries, with their addresses.
	Names []NameState `json:"names,omitempty"`
	// Issues are what an operator should know.
	Issues []Issue `json:"issues,omitempty"`
}

// NameState is a host name of a list.
type NameState struct {
	// Name is the host name.
	Name string `json:"name"`
	// Addresses are what it was resolved to last.
	Addresses []string `json:"addresses"`
	// Resolved is when that was; absent if it never was.
	Resolved time.Time `json:"resolved,omitzero"`
	// Error is why it could not be resolved the last time.
	Error string `json:"error,omitempty"`
}

// Issue is something about a list that an operator should know.
type Issue struct {
	// Code is the kind of issue: list_unavailable, list_empty, list_shrunk, entries_invalid,
	// entries_too_wide, entries_protected or name_unresolved.
	Code string `json:"code"`
	// Message says what it is.
	Message string `json:"message"`
	// Hint says what to do.
	Hint string `json:"hint,omitempty"`
}

// The states of a list.
const (
	Loading = "loading"
	Ready   = "ready"
	Failed  = "error"
)

func newList(name string, settings *Config, dir string, o *Options) *List {
	l := &List{name: name, settings: settings, dir: dir, o: o, log: o.Log.With("list", name)}
	l.mu.state = State{Name: name, Source: settings.Source(), Location: settings.location(), State: Loading, Since: o.Clock()}
	return l
}

// Contains reports whether an address is in the list.
func (l *List) Contains(a netip.Addr) bool {
	c := l.content.Load()
	return c != nil && (c.set.Contains(a) || c.all && !ipset.Private().Contains(a))
}

// State returns the state of the list.
func (l *List) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.mu.state
	s.Issues, s.Names = slices.Clone(s.Issues), slices.Clone(s.Names)
	if !s.Loaded.IsZero() && s.Entries == 0 {
		s.Issues = append(s.Issues, Issue{"list_empty", "the list is empty: allow lets in no client through it, and deny refuses none", ""})
	}
	return s
}

// size returns how many entries the list has.
func (l *List) size() int {
	if c := l.content.Load(); c != nil {
		return c.set.Len()
	}
	return 0
}

// put makes networks the entries of the list.
func (l *List) put(set *ipset.Set, issues []Issue) {
	before := l.size()
	l.content.Store(&content{set: set})
	now := l.o.Clock()
	l.mu.Lock()
	s := &l.mu.state
	s.Entries, s.Loaded, s.Issues = set.Len(), now, issues
	recovered := s.State == Failed
	if s.State != Ready {
		s.State, s.Since = Ready, now
	}
	first := !l.mu.told
	l.mu.told, l.mu.stale = true, false
	l.mu.Unlock()
	if before != set.Len() || recovered {
		l.log.Info("list loaded", "entries", set.Len(), "before", before)
	}
	// Decisions and host names change all the time: only that they can be loaded is news.
	if first || recovered || before != set.Len() && (l.settings.URL != "" || l.settings.File != "") {
		l.notify(EventLoaded, set.Len(), before, now, "")
	}
}

// fail notes that the source could not be used. The entries stay.
func (l *List) fail(issue Issue) {
	now := l.o.Clock()
	l.mu.Lock()
	s := &l.mu.state
	fresh := s.State != Failed || len(s.Issues) == 0 || s.Issues[0] != issue
	if s.State != Failed {
		s.State, s.Since = Failed, now
	}
	s.Issues = append([]Issue{issue}, withoutFailure(s.Issues)...)
	entries, loaded := s.Entries, s.Loaded
	stale := l.becameStaleLocked(now)
	l.mu.Unlock()
	if fresh {
		l.log.Warn("list cannot be loaded", "error", issue.Message, "entries_in_use", entries, "loaded", loaded)
		kind := EventFailed
		if issue.Code == "list_shrunk" {
			kind = EventShrunk
		}
		l.notify(kind, entries, entries, loaded, issue.Message)
	}
	if stale {
		l.log.Warn("list is stale", "entries_in_use", entries, "loaded", loaded)
		l.notify(EventStale, entries, entries, loaded, issue.Message)
	}
}

// withoutFailure removes the issue of a source that could not be used.
func withoutFailure(issues []Issue) []Issue {
	return slices.DeleteFunc(issues, func(i Issue) bool { return i.Code == "list_unavailable" || i.Code == "list_shrunk" })
}

// noteFetch notes when the source was asked and will be again.
func (l *List) noteFetch(next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.state.Checked, l.mu.state.Next = l.o.Clock(), next
}

// start begins what keeps the list up to date.
func (l *List) start() {
	run := l.runner()
	if run == nil {
		return
	}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	l.done = make(chan struct{})
	go func() {
		defer close(l.done)
		run(ctx)
	}()
}

// end ends it, and waits.
func (l *List) end() {
	if l.stop != nil {
		l.stop()
		<-l.done
	}
}
