package api

import (
	"cmp"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"headgate/internal/config"
	"headgate/internal/metrics"
	"headgate/internal/plan"
)

// listing caches what is needed for lists of one configuration: the names of its objects,
// their search texts, and their recently used forms. It is kept while the configuration is
// active, so that serving a page costs in proportion to the objects on it.
type listing struct {
	cfg *config.Config

	mu struct {
		sync.Mutex
		names map[string][]string // of a kind, sorted
		texts map[string][]string // what they are found by, in lower case
		forms map[formKey]written
		size  int // of forms, in bytes
	}
}

// formKey is an object of a configuration.
type formKey struct{ kind, name string }

// written is an object's settings in the configuration files, with secrets masked, and its
// ETag. It is immutable.
type written struct {
	text []byte
	etag string
}

// maxForms bounds the forms that are kept, in bytes. Beyond it they are made anew.
const maxForms = 4 << 20

// formOf returns the form of an object of a configuration, false if there is none. Forms of
// the active configuration are cached.
func (a *API) formOf(cfg *config.Config, k *config.Kind, name string) (written, bool) {
	l := a.listing.Load()
	if running, err := a.running(); err == nil && running == cfg {
		l = a.listingOf(cfg)
	}
	kept := l != nil && l.cfg == cfg // not that of a draft
	key := formKey{k.Name, name}
	if kept {
		if f, ok := l.form(key); ok {
			return f, true
		}
	}
	text, ok := cfg.Canonical(k.Name, name, true)
	if !ok {
		return written{}, false
	}
	f := written{text, cfg.ETag(k.Name, name)}
	if kept {
		l.keep(key, f)
	}
	return f, true
}

func (l *listing) form(key formKey) (written, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok := l.mu.forms[key]
	return f, ok
}

// keep keeps a form, unless it alone would be much of what may be kept.
func (l *listing) keep(key formKey, f written) {
	size := len(f.text) + len(f.etag) + len(key.name) + formOverhead
	if size > maxForms/16 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.mu.forms[key]; ok {
		return
	}
	if l.mu.size+size > maxForms || l.mu.forms == nil {
		l.mu.forms, l.mu.size = map[formKey]written{}, 0
	}
	l.mu.forms[key] = f
	l.mu.size += size
}

// formOverhead is the approximate memory of one map entry besides its texts, in bytes.
const formOverhead = 128

// listingOf returns the listing of a configuration.
func (a *API) listingOf(cfg *config.Config) *listing {
	if l := a.listing.Load(); l != nil && l.cfg == cfg {
		return l
	}
	l := &listing{cfg: cfg}
	l.mu.names, l.mu.texts = map[string][]string{}, map[string][]string{}
	a.listing.Store(l)
	return l
}

// names returns the names of the objects of a kind, sorted. They must not be changed.
func (l *listing) names(k *config.Kind) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.namesLocked(k)
}

func (l *listing) namesLocked(k *config.Kind) []string {
	names, ok := l.mu.names[k.Name]
	if !ok {
		names = k.Names(l.cfg)
		l.mu.names[k.Name] = names
	}
	return names
}

// search returns the names of the objects whose text contains q.
func (l *listing) search(k *config.Kind, q string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.namesLocked(k)
	texts, ok := l.mu.texts[k.Name]
	if !ok {
		texts = make([]string, len(names))
		for i, name := range names {
			texts[i] = strings.ToLower(words(k.Find(l.cfg, name)))
		}
		l.mu.texts[k.Name] = texts
	}
	q = strings.ToLower(q)
	found := []string{}
	for i, text := range texts {
		if strings.Contains(text, q) {
			found = append(found, names[i])
		}
	}
	return found
}

// words returns the text that an object is found with.
func words(o config.Named) string {
	info := o.Info()
	all := append([]string{info.Name, info.Description}, info.Tags...)
	if p, ok := o.(*config.Proxy); ok {
		all = append(all, p.VirtualHosts...)
	}
	return strings.Join(all, "\n")
}

// ordersOf are the fields that a list of objects of a kind can be sorted by.
func ordersOf(k *config.Kind) []string {
	switch k.Name {
	case "proxies":
		return []string{"name", "state", "servers", "last_change", "requests", "errors"}
	case "ports", "certificates":
		return []string{"name", "state", "last_change"}
	}
	return []string{"name", "last_change"}
}

// place is the position of an object in a sorted list.
type place struct {
	number int64
	text   string
	name   string
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.number, o.number), strings.Compare(p.text, o.text), strings.Compare(p.name, o.name))
}

// cursor returns the place as a cursor.
func (p place) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.number, 36) + "\x00" + p.text + "\x00" + p.name))
}

// placeOf reads a cursor.
func placeOf(cursor string) (p place, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.Split(string(data), "\x00")
	if err != nil || len(parts) != 3 {
		return p, false
	}
	p.number, err = strconv.ParseInt(parts[0], 36, 64)
	p.text, p.name = parts[1], parts[2]
	return p, err == nil
}

// chosen returns the names on the requested page, and the cursor of the next page. If the
// cursor's object was deleted or moved, the page continues after its former position.
func (a *API) chosen(c *call, cfg *config.Config) (page []string, next string, err error) {
	k, l := c.row.kind, a.listingOf(cfg)
	names := l.names(k)
	if q := c.text("q"); q != "" {
		names = l.search(k, q)
	}
	field, down := strings.CutPrefix(c.text("sort"), "-")
	at := a.placing(k, field)
	places := make([]place, len(names))
	for i, name := range names {
		places[i] = place{name: name}
		at(&places[i])
	}
	order := place.compare
	if down {
		order = func(p, o place) int { return o.compare(p) }
	}
	if down || field != "" && field != "name" {
		slices.SortFunc(places, order)
	}
	begin := 0
	if cursor := c.text("cursor"); cursor != "" {
		after, ok := placeOf(cursor)
		if !ok {
			return nil, "", badCursor()
		}
		var found bool
		if begin, found = slices.BinarySearchFunc(places, after, order); found {
			begin++
		}
	}
	end := min(begin+max(c.number("limit", defaultPage, maxPage), 1), len(places))
	for _, p := range places[begin:end] {
		page = append(page, p.name)
	}
	if end < len(places) {
		next = places[end-1].cursor()
	}
	return page, next, nil
}

// attention is the order of proxy states in a list that is sorted by state.
var attention = []string{plan.ProxyDown, plan.ProxyDegraded, plan.ProxyMaintenance, plan.ProxyActive, plan.ProxyInactive}

// placing returns a function that sets the position of an object in a list that is sorted
// by a field.
func (a *API) placing(k *config.Kind, field string) func(*place) {
	switch field {
	case "state":
		if k.Name != "proxies" {
			s := a.statesOf(k, nil)
			return func(p *place) { p.text = s.words[k.Name+" "+p.name] }
		}
		states := a.standing()
		return func(p *place) { p.number = int64(slices.Index(attention, states[p.name].State)) }
	case "servers":
		states := a.standing()
		return func(p *place) { s := states[p.name]; p.number = int64(s.Healthy)<<32 + int64(s.Total) }
	case "last_change":
		return func(p *place) {
			if when := a.Control.LastChange(k.Name, p.name).When; !when.IsZero() {
				p.number = when.UnixNano()
			}
		}
	case "requests":
		return func(p *place) { p.number = bounded(a.recently(p.name).Requests) }
	case "errors":
		return func(p *place) {
			r := a.recently(p.name)
			p.number = bounded(r.ClientErrors + r.ServerErrors)
		}
	}
	return func(*place) {}
}

func bounded(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// standing returns the states of all proxies.
func (a *API) standing() map[string]plan.ProxyState {
	all := map[string]plan.ProxyState{}
	for _, p := range a.Control.Plan().Proxies("") {
		all[p.Name] = p
	}
	return all
}

// recently returns what happened at a proxy within the last minutes.
func (a *API) recently(proxy string) metrics.Point {
	return a.Control.Series().Recent(metrics.Scope{Kind: metrics.ScopeHTTP, Proxy: proxy})
}
