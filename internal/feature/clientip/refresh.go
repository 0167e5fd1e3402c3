package clientip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/setting/unit"
	"headgate/internal/store"
)

// Refresh configures the updates of the networks of CDNs in client_ip, from the lists that
// each CDN publishes. The last valid list is kept in the state directory; without one, the
// list in the program is used, which has a date.
type Refresh struct {
	// Enabled is whether lists are downloaded. Only those of CDNs in client_ip are, and the
	// requests do not identify the installation. The proxy of the environment (HTTPS_PROXY)
	// is used.
	Enabled bool `json:"enabled" default:"true"`
	// Interval is the age of a list after which it is downloaded again.
	Interval unit.Duration `json:"interval" default:"24h" min:"1h" max:"720h"`
}

// Lists provides the networks of CDNs. Without Refresh they are those of the program, and
// stored ones.
type Lists struct {
	Refresh
	// Values is where fetched lists are kept, nil for nowhere.
	Values store.Values
	// Kept returns the list of a CDN that was kept there before, as it was loaded; no
	// bytes if there is none. Nil knows of none.
	Kept func(cdn string) ([]byte, error)
}

// ReadKept loads the list of a CDN that was kept; no bytes if there is none.
func ReadKept(values store.Values, cdn string) ([]byte, error) {
	if values == nil {
		return nil, nil
	}
	text, err := values.Load(store.PrefixCDN + cdn)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// The bounds of fetching.
const (
	maxFetched   = 16 << 20 // bytes; what Amazon publishes has two million
	fetchTimeout = time.Minute
	maxRedirects = 3
	// soon is when a list that is missing is fetched first, spread when one that
	// is old: not all at once after a power cut.
	soon   = time.Second
	spread = time.Minute
	// again is when the first fetch that failed is tried again; the pause doubles.
	again = 10 * time.Minute
)

// fresh keeps the networks of a CDN up to date.
type fresh struct {
	cdn    *cdn // of its own
	floor  []netip.Prefix
	date   time.Time // of the list in use; owned by the loop
	lists  Lists
	client *http.Client
	log    *slog.Logger
	clock  func() time.Time
	stop   context.CancelFunc // nil until Begin
	done   chan struct{}
	unread error // why the kept list is not used
}

// current returns a CDN with its networks as they are, and as they will be.
func current(known *cdn, lists Lists, env exchange.Env) *cdn {
	if len(known.from) == 0 || env.Keep == nil {
		return known
	}
	of := struct {
		name string
		Refresh
		kept bool
	}{known.name, lists.Refresh, lists.Values != nil}
	return exchange.Keep(env, "networks of a CDN", of, func() *fresh { return newFresh(known, lists, env) }).cdn
}

// Start starts the fetching.
func (f *fresh) Start() {
	if f.unread != nil {
		f.log.Warn("cannot use the saved CDN networks", "cdn", f.cdn.name, "error", f.unread)
	}
	if !f.lists.Enabled {
		return
	}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	f.done = make(chan struct{})
	go f.run(ctx)
}

// newFresh returns the networks that are known so far.
func newFresh(known *cdn, lists Lists, env exchange.Env) *fresh {
	f := &fresh{
		cdn: &cdn{preset: known.preset}, lists: lists, log: env.Log, clock: env.Clock,
		client: &http.Client{Timeout: fetchTimeout, CheckRedirect: onlyHTTPS, Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: fetchTimeout / 2, ForceAttemptHTTP2: true,
		}},
	}
	embedded := known.embedded
	f.floor, f.date = embedded.networks, embedded.date
	f.cdn.networks.Store(known.networks.Load())
	if kept := f.kept(); kept != nil && kept.date.After(f.date) {
		f.date = kept.date
		f.cdn.networks.Store(kept.set())
	}
	return f
}

// Retire ends the fetching.
func (f *fresh) Retire() {
	if f.stop != nil {
		f.stop()
		<-f.done
	}
}

func (f *fresh) run(ctx context.Context) {
	defer close(f.done)
	failed := 0
	for pause := f.first(); clock.Sleep(ctx, pause); {
		if f.adopt() {
			failed, pause = 0, f.first()
			continue
		}
		if err := f.fetchAll(ctx); err == nil {
			failed, pause = 0, f.lists.Interval.D()
			continue
		} else if ctx.Err() == nil {
			f.log.Warn("cannot fetch CDN networks", "cdn", f.cdn.name, "error", err,
				"in_use", f.cdn.networks.Load().Len(), "as_of", f.date.Format(time.DateOnly))
		}
		pause = min(again<<failed, f.lists.Interval.D())
		failed = min(failed+1, 10)
	}
}

// first returns how long the first fetch waits.
func (f *fresh) first() time.Duration {
	if f.cdn.networks.Load().Len() == 0 {
		return soon
	}
	due := f.lists.Interval.D() - f.clock().Sub(f.date)
	return max(due, 0) + soon + rand.N(spread)
}

// adopt uses the list that another machine has saved in a shared store in the meantime, so that not
// every machine fetches it. It reports whether there is one.
func (f *fresh) adopt() bool {
	text, err := ReadKept(f.lists.Values, f.cdn.name)
	if err != nil || len(text) == 0 {
		return false
	}
	l, err := parseList(text)
	tomorrow := f.clock().Add(24 * time.Hour) // beyond it, the clock of the other machine is wrong
	if err != nil || !l.date.After(f.date) || l.date.After(tomorrow) || checkFetched(l.networks, f.floor) != nil {
		return false
	}
	f.use(l)
	return true
}

// use activates a list that was checked.
func (f *fresh) use(l *list) {
	set := l.set()
	if before := f.cdn.networks.Swap(set); before.Len() != set.Len() {
		f.log.Info("CDN networks changed", "cdn", f.cdn.name, "networks", set.Len(), "before", before.Len())
	}
	f.date = l.date
}

// fetchAll fetches the list, checks it, uses it and keeps it.
func (f *fresh) fetchAll(ctx context.Context) error {
	var entries []string
	for _, url := range f.cdn.from {
		body, err := f.fetch(ctx, url)
		if err != nil {
			return err
		}
		part, err := f.cdn.read(body)
		if err != nil {
			return fmt.Errorf("read %s: %v", url, err)
		}
		entries = append(entries, part...)
	}
	networks, err := parseEntries(entries)
	if err == nil {
		err = checkFetched(networks, f.floor)
	}
	if err != nil {
		return fmt.Errorf("refused what %s has: %v", f.cdn.from[0], err)
	}
	l := &list{networks: networks, date: f.clock()}
	f.use(l)
	return f.keep(l)
}

func (f *fresh) fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, text/plain")
	request.Header.Set("User-Agent", "headgate")
	answer, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 || answer.TLS == nil {
		return nil, fmt.Errorf("%s answers %s", url, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxFetched+1))
	if err == nil && len(body) > maxFetched {
		err = errors.New("larger than 16 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", url, err)
	}
	return body, nil
}

// onlyHTTPS follows a few redirects, and none that leaves TLS.
func onlyHTTPS(request *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects || request.URL.Scheme != "https" {
		return fmt.Errorf("redirected to %s", request.URL.Redacted())
	}
	return nil
}

// keep keeps the list for the next start.
func (f *fresh) keep(l *list) error {
	if f.lists.Values == nil {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Networks of %s, fetched %s from %s\n", f.cdn.name, l.date.UTC().Format(time.DateOnly), f.cdn.from[0])
	for _, p := range l.networks {
		fmt.Fprintln(&b, p)
	}
	return f.lists.Values.Keep(store.PrefixCDN+f.cdn.name, b.Bytes())
}

// kept returns the list that was kept, nil if there is none that can be used. It is
// checked as if it came from the network.
func (f *fresh) kept() *list {
	if f.lists.Kept == nil {
		return nil
	}
	text, err := f.lists.Kept(f.cdn.name)
	if err == nil && len(text) == 0 {
		return nil
	}
	var l *list
	if err == nil {
		l, err = parseList(text)
	}
	if err == nil {
		err = checkFetched(l.networks, f.floor)
	}
	if err != nil {
		f.unread = err
		return nil
	}
	return l
}

// Fetched reports whether a CDN's networks are not in the program, so that they
// have to be fetched.
func Fetched(name string) bool {
	return slices.ContainsFunc(presets[:], func(p preset) bool { return p.name == name && p.alone })
}
