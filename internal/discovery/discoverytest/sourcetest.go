// Package discoverytest replaces providers of discovered objects in tests: Engines
// opens a Fake for each entry, and a test sets what a Fake finds with Set.
package discoverytest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
)

// Engines are the fakes that were opened. Its methods may be called by several
// goroutines at once.
type Engines struct {
	mu struct {
		sync.Mutex
		fakes map[string][]*Fake
		err   error
	}
}

// Open is a discovery.DockerOpener.
func (e *Engines) Open(name string, settings *config.Docker, _ discovery.Environment) (discovery.Source, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.err != nil {
		return nil, e.mu.err
	}
	f := &Fake{Settings: settings, changed: make(chan struct{}, 1)}
	f.mu.snapshot = &discovery.Snapshot{State: discovery.Connecting, Since: time.Now()}
	if e.mu.fakes == nil {
		e.mu.fakes = map[string][]*Fake{}
	}
	e.mu.fakes[name] = append(e.mu.fakes[name], f)
	return f, nil
}

// Fail makes Open fail, or succeed again with nil.
func (e *Engines) Fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.err = err
}

// Get returns the newest fake of an entry, nil if there is none.
func (e *Engines) Get(name string) *Fake {
	all := e.All(name)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// All returns the fakes of an entry, the oldest first.
func (e *Engines) All(name string) []*Fake {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]*Fake(nil), e.mu.fakes[name]...)
}

// Fake is a source that finds what a test says.
type Fake struct {
	// Settings are those that it was opened with.
	Settings *config.Docker

	changed chan struct{}
	mu      struct {
		sync.Mutex
		snapshot         *discovery.Snapshot
		started, stopped int
	}
}

// Find says that these objects are there, and no others.
func (f *Fake) Find(objects ...*config.Discovered) {
	f.Set(&discovery.Snapshot{State: discovery.Running, Since: time.Now(), Known: true, Objects: objects})
}

// Lose makes the source unavailable. What was found stays.
func (f *Fake) Lose(reason string) {
	s := *f.Snapshot()
	s.State, s.Since, s.Reason = discovery.Failed, time.Now(), reason
	f.Set(&s)
}

// Set says what is known.
func (f *Fake) Set(s *discovery.Snapshot) {
	f.mu.Lock()
	f.mu.snapshot = s
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Start counts.
func (f *Fake) Start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.started++
}

// Snapshot returns what a test said.
func (f *Fake) Snapshot() *discovery.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.snapshot
}

// Changed has a value after Set.
func (f *Fake) Changed() <-chan struct{} { return f.changed }

// Stop counts.
func (f *Fake) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.stopped++
}

// Running reports whether it was started and not stopped. To stop twice is a mistake.
func (f *Fake) Running() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.started > 1 || f.mu.stopped > 1 {
		panic(fmt.Sprintf("started %d times, stopped %d times", f.mu.started, f.mu.stopped))
	}
	return f.mu.started == 1 && f.mu.stopped == 0
}

// Proxy returns a proxy that a container named NAME-1 says by labels of the form
// "path=value". Age orders containers: the lower is the older.
func Proxy(name string, age int, server string, labels ...string) *config.Discovered {
	return object("proxies", "http", name, age, server, labels)
}

// TCPProxy is Proxy for a TCP proxy, UDPProxy for a UDP proxy.
func TCPProxy(name string, age int, server string, labels ...string) *config.Discovered {
	return object("tcp_proxies", "tcp", name, age, server, labels)
}

// UDPProxy is Proxy for a UDP proxy.
func UDPProxy(name string, age int, server string, labels ...string) *config.Discovered {
	return object("udp_proxies", "udp", name, age, server, labels)
}

func object(kind, word, name string, age int, server string, labels []string) *config.Discovered {
	container := name + "-1"
	d := &config.Discovered{
		Kind: kind, Name: name, Created: time.Unix(int64(age), 0),
		Origin: config.Origin{Via: config.ViaDocker, Provider: "local", Container: container},
	}
	for _, l := range labels {
		path, value, _ := strings.Cut(l, "=")
		d.Labels = append(d.Labels, config.Label{Path: path, Value: value, Container: container, Name: "headgate." + word + "." + name + "." + path})
	}
	if server != "" {
		d.Servers = []config.DiscoveredServer{{Address: server, Container: container}}
	}
	return d
}
