// Package agent publishes the containers of other machines, which agents report. Open returns
// the source of one machine, and Receive gives it a report.
//
// An agent can be hostile: it names objects, labels and ports, and nothing else. The
// address of every server is that of its machine, and the merge bounds what labels ask for.
package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/file"
	"headgate/internal/server/safedial"
	"headgate/internal/setting/shown"
)

// The limits of reports.
const (
	// MaxReport is the largest report, in bytes.
	MaxReport = 4 << 20
	// maxObjects is how many objects a report has, maxServers how many servers one of
	// them, and maxIssues how many issues.
	maxObjects, maxServers, maxIssues = 2000, 256, 1000
	// minInterval is the shortest time between two reports that are used.
	minInterval = 500 * time.Millisecond
	// staleAfter and goneAfter are how long after its last report a machine is stale, and
	// its objects are removed. Agents report every 10 seconds.
	staleAfter, goneAfter = 25 * time.Second, 60 * time.Second
)

// ErrTooSoon is the error of a report that follows another one too quickly.
var ErrTooSoon = errors.New("reports follow each other too quickly")

// Source is one machine. Its methods may be called by several goroutines at once.
type Source struct {
	*discovery.Published
	name     string
	settings *config.Agent
	log      *slog.Logger
	state    string // directory of what is kept, "" for nothing
	quit     chan struct{}
	done     sync.WaitGroup

	mu struct {
		sync.Mutex
		last time.Time // of the last report, or of the start
		used time.Time // of the last report that was used
		from netip.Addr
	}
}

// Open returns the source of an entry of discovery.agent, with what was reported last. It
// starts nothing.
func Open(name string, settings *config.Agent, env discovery.Environment) (discovery.Source, error) {
	s := &Source{Published: discovery.NewPublished(), name: name, settings: settings, log: env.Log, state: env.State, quit: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.mu.last = time.Now()
	s.readKept()
	return s, nil
}

// Start starts to watch whether the agent reports.
func (s *Source) Start() {
	s.done.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-s.quit:
				return
			case now := <-t.C:
				s.age(now)
			}
		}
	})
}

// Stop ends that, and waits for it.
func (s *Source) Stop() {
	close(s.quit)
	s.done.Wait()
}

// age makes a machine stale, and then removes its objects.
func (s *Source) age(now time.Time) {
	s.mu.Lock()
	silent, was := now.Sub(s.mu.last), s.Snapshot()
	next := *was
	switch {
	case silent >= goneAfter:
		next = discovery.Snapshot{State: discovery.Failed, Known: true, Hint: "start headgate agent on the machine, with the token of this name"}
		next.Reason = fmt.Sprintf("the agent has not reported for %v", goneAfter)
	case silent >= staleAfter && was.State != discovery.Failed && was.Known:
		next.State = discovery.Stale
		next.Reason, next.Hint = fmt.Sprintf("the agent has not reported for %v; its objects are removed after %v", staleAfter, goneAfter), "look at headgate agent on the machine"
	}
	gone := silent >= goneAfter && len(was.Objects) > 0
	s.Publish(next)
	s.mu.Unlock()
	if gone {
		s.Forget()
	}
}

// Receive uses a report that came from an address. Again reports whether it is the first one
// after the agent was away. The error is ErrTooSoon, or says what is wrong with the report.
func (s *Source) Receive(from netip.Addr, r *Report) (again bool, err error) {
	at, err := s.addressOf(from)
	if err != nil {
		return false, err
	}
	if err := r.check(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.mu.used) < minInterval {
		return false, ErrTooSoon
	}
	before := s.Snapshot()
	again = before.State != discovery.Running
	s.mu.last, s.mu.used = now, now
	next := discovery.Snapshot{State: discovery.Running, Known: true, Objects: s.objects(r, at, before.Objects)}
	if r.Failure != "" {
		next.State = discovery.Failed
		next.Reason, next.Hint = shown.Line(r.Failure, 500), shown.Line(r.Hint, 500)
	}
	for _, i := range r.Issues {
		next.Issues = append(next.Issues, discovery.Issue{
			Container: s.container(i.Container), Label: shown.Line(i.Label, 200), Kind: i.Kind, Name: shown.Line(i.Name, 100),
			Code: discovery.Code(shown.Line(i.Code, 40)), Message: shown.Line(i.Message, 500), Hint: shown.Line(i.Hint, 500),
		})
	}
	changed := from != s.mu.from || !slices.Equal(before.Objects, next.Objects)
	s.mu.from = from
	s.Publish(next)
	if changed {
		if err := s.keep(from, r); err != nil {
			s.log.Warn("the report of an agent cannot be saved for the next start", "provider", s.name, "error", err)
		}
	}
	return again, nil
}

// addressOf returns the address of the machine's published ports.
func (s *Source) addressOf(from netip.Addr) (netip.Addr, error) {
	at := from.Unmap().WithZone("")
	if s.settings.Address.IsValid() {
		return s.settings.Address, nil
	}
	if !at.IsValid() || at.IsLoopback() {
		return at, errors.New("the agent connects from this machine, whose address containers cannot have; set address of its entry")
	}
	if err := safedial.Check(at); err != nil {
		return at, fmt.Errorf("the agent connects from %w; set address of its entry", err)
	}
	return at, nil
}

// container returns the name of a container of the machine.
func (s *Source) container(name string) string {
	if name == "" {
		return ""
	}
	return shown.Line(strings.ReplaceAll(name, "@", "_"), 200) + "@" + s.name
}

// objects makes objects of a report. Those that are the same as before are the same pointers.
func (s *Source) objects(r *Report, at netip.Addr, before []*config.Discovered) []*config.Discovered {
	type key struct{ kind, name, container string }
	had := map[key]*config.Discovered{}
	for _, d := range before {
		had[key{d.Kind, d.Name, d.Origin.Container}] = d
	}
	shared := ofThisMachine(at)
	out := make([]*config.Discovered, 0, len(r.Objects))
	for i := range r.Objects {
		o := &r.Objects[i]
		d := &config.Discovered{
			Kind: o.Kind, Name: o.Name, Created: o.Created.UTC(), Labels: s.labels(o.Labels),
			Origin: config.Origin{Via: config.ViaAgent, Provider: s.name, Container: s.container(o.Container), Label: shown.Line(o.Label, 200)},
		}
		for _, server := range o.Servers {
			if address := placeAt(server.Address, at, o.Kind == "proxies"); address != "" {
				d.Servers = append(d.Servers, config.DiscoveredServer{Address: address, Container: s.container(server.Container), Shared: shared, Labels: s.labels(server.Labels)})
			}
		}
		if was := had[key{d.Kind, d.Name, d.Origin.Container}]; was != nil && reflect.DeepEqual(was, d) {
			d = was
		}
		out = append(out, d)
	}
	return out
}

// labels returns labels with the names of their containers here.
func (s *Source) labels(all []Label) []config.Label {
	out := make([]config.Label, len(all))
	for i, l := range all {
		out[i] = config.Label{Path: l.Path, Value: l.Value, Container: s.container(l.Container), Name: shown.Line(l.Name, 300)}
	}
	return out
}

// placeAt returns the address of a server with the host of its machine, "" for one that has no
// port.
func placeAt(address string, at netip.Addr, url bool) string {
	scheme, base := "", ""
	if url {
		var ok bool
		if scheme, address, ok = strings.Cut(address, "://"); !ok || scheme != "http" && scheme != "https" && scheme != "h2c" {
			return ""
		}
		scheme += "://"
		if i := strings.IndexByte(address, '/'); i >= 0 {
			address, base = address[:i], address[i:]
		}
	}
	a, err := netip.ParseAddrPort(address)
	if err != nil || a.Port() == 0 || len(base) > 1024 {
		return ""
	}
	return scheme + netip.AddrPortFrom(at, a.Port()).String() + base
}

// ofThisMachine reports whether headgate could listen at an address itself.
func ofThisMachine(at netip.Addr) bool {
	if at.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(all, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == at.Unmap()
	})
}

// kept is a report in a file.
type kept struct {
	From   netip.Addr `json:"from"`
	Report *Report    `json:"report"`
}

func (s *Source) keptFile() string { return filepath.Join(s.state, s.name+".agent.json") }

// keep writes a report to its file.
func (s *Source) keep(from netip.Addr, r *Report) error {
	if s.state == "" {
		return nil
	}
	data, err := json.Marshal(kept{from, r})
	if err == nil {
		err = os.MkdirAll(s.state, 0o700)
	}
	if err == nil {
		err = file.Put(s.keptFile(), data)
	}
	return err
}

// readKept uses the report that was kept, until the agent reports or has been away for too long.
func (s *Source) readKept() {
	if s.state == "" {
		return
	}
	data, err := file.Read(s.keptFile(), 2*MaxReport, "more than was written")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var k kept
	if err == nil {
		err = json.Unmarshal(data, &k)
	}
	if err == nil && k.Report != nil {
		if at, e := s.addressOf(k.From); e == nil && k.Report.check() == nil {
			s.mu.from = k.From
			s.Restore(discovery.Snapshot{
				State: discovery.Stale, Known: true, Objects: s.objects(k.Report, at, nil),
				Reason: "the agent has not reported since headgate started",
			})
			return
		}
		return
	}
	s.log.Warn("the saved report of an agent cannot be used", "provider", s.name, "error", err)
}

// Forget removes the report that was kept.
func (s *Source) Forget() {
	if s.state != "" {
		_ = os.Remove(s.keptFile()) // one that stays does no harm
	}
}
