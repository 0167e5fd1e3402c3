package control

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery/discoverytest"
	"headgate/internal/ports"
	"headgate/internal/store/history"
	"headgate/internal/testhouse"
)

// world is a control of which a test makes every step, with what has to be true of it:
// what is served, what the file says, and what is remembered.
type world struct {
	t     *testing.T
	dir   string
	file  string
	ports []string // numbers that the configurations use
	echo  string   // a server for streams
	app   string   // a server that answers "app"

	c       *Control
	engines *discoverytest.Engines
	log     *buffer
	events  []Event

	// What is expected.
	disk    string // the file, "" for none
	force   said   // what is served by
	seen    bool   // the file is what was applied last
	history []rev
	pending int    // the revision that waits, 0 for none
	before  string // what it goes back to
	said    []int  // what discovery says that there is
	found   []int  // of it, what is in force
	verbs   []Verb // told since the start of the control
	held    bool

	foreign map[string]net.Listener // ports that somebody else has
	guests  []*guest
	serial  int
	all     map[string]said // that were made, by text
	wrong   []string
}

// rev is a revision as it has to be.
type rev struct {
	digest history.Digest
	state  history.State
}

// said is a configuration of the test.
type said struct {
	text   string
	name   string // what its catch-all answers
	ports  map[string]portSaid
	tcp    map[string]string // addresses by name
	udp    map[string]string
	hosts  map[int]bool // hosts of discovered objects that it takes by hand
	docker bool
	valid  bool
}

type portSaid struct{ address, protocol string }

// guest is a connection that is open over changes.
type guest struct {
	*client
	address  string
	since    time.Time // of its listener
	stream   bool
	protocol string
}

func newWorld(t *testing.T, server, echo string) *world {
	w := &world{t: t, dir: t.TempDir(), ports: testhouse.Ports(t, 5), echo: echo, app: server, foreign: map[string]net.Listener{}, all: map[string]said{}}
	w.file = filepath.Join(w.dir, "headgate.yaml")
	return w
}

func (w *world) fault(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// open starts a control on what is there.
func (w *world) open() {
	w.log, w.events, w.verbs = &buffer{}, nil, nil
	w.engines = &discoverytest.Engines{}
	c, err := New(Options{
		Log: slog.New(slog.NewTextHandler(w.log, nil)), ConfigFile: w.file, StateDir: filepath.Join(w.dir, "state"), Docker: w.engines.Open,
	})
	if err != nil {
		w.fault("it does not open: %v", err)
		return
	}
	w.c = c
	c.ports = ports.New(ports.Options{Log: c.log, Metrics: c.metrics, Current: &c.current, Pace: ports.Pace{First: time.Hour, Last: time.Hour}})
	for i, p := range c.participants {
		if _, ok := p.(sockets); ok {
			c.participants[i] = sockets{c.ports}
		}
	}
	c.Observe(func(e *Event) { w.events = append(w.events, *e) })
}

// random is a random configuration.
func (w *world) random(draw func(n int) int) said {
	w.serial++
	s := said{name: fmt.Sprintf("v%d", w.serial), ports: map[string]portSaid{}, tcp: map[string]string{}, udp: map[string]string{}, hosts: map[int]bool{}}
	for i, number := range w.ports {
		ip := [...]string{"127.0.0.1", "127.0.0.1", "127.0.0.1", "0.0.0.0"}[draw(4)]
		name := string(rune('a' + (i+draw(2))%len(w.ports)))
		at := ip + ":" + number
		switch k := draw(12); {
		case k < 5:
			s.ports[name] = portSaid{at, "http"}
		case k < 7:
			s.ports[name] = portSaid{at, "https"}
		case k < 8:
			s.ports[name] = portSaid{at, "https"}
			s.ports[name+"q"] = portSaid{at, "http3"}
		case k < 9:
			s.tcp[name] = at
		case k < 10:
			s.udp[name] = at
		}
	}
	for i := range 3 {
		s.hosts[i] = draw(6) == 0
	}
	s.docker = draw(3) > 0
	s.write(w, draw(14) == 0)
	w.all[s.text] = s
	return s
}

// parse returns what a text says.
func (w *world) parse(text string) (said, bool) {
	s, ok := w.all[text]
	return s, ok
}

// write makes the text.
func (s *said) write(w *world, broken bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\nversion: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\n", s.name)
	b.WriteString("ports:\n")
	for _, name := range slices.Sorted(maps.Keys(s.ports)) {
		fmt.Fprintf(&b, "  %s: {address: %q, protocol: %s, drain_timeout: 2s}\n", name, s.ports[name].address, s.ports[name].protocol)
	}
	if len(s.ports) == 0 {
		b.WriteString("  {}\n")
	}
	for kind, all := range map[string]map[string]string{"tcp_proxies": s.tcp, "udp_proxies": s.udp} {
		if len(all) > 0 {
			b.WriteString(kind + ":\n")
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&b, "  %s: {address: %q, servers: [{address: %q}]}\n", name, all[name], w.echo)
		}
	}
	b.WriteString("proxies:\n")
	fmt.Fprintf(&b, "  all: {routes: [{fixed_response: {status: 200, body: %q}}]}\n", s.name)
	fmt.Fprintf(&b, "  held: {virtual_hosts: [held.example], routes: [{servers: [{url: %q}]}]}\n", w.app)
	for i := range 3 {
		if s.hosts[i] {
			fmt.Fprintf(&b, "  hand%d: {virtual_hosts: [d%d.example], routes: [{fixed_response: {status: 200, body: %q}}]}\n", i, i, s.name)
		}
	}
	if s.docker {
		b.WriteString("discovery: {docker: {local: {}}}\n")
	}
	if broken {
		b.WriteString("nonsense: true\n")
	}
	s.text, s.valid = b.String(), !broken
}

// at returns what a client of 127.0.0.1 finds on a port number of TCP: the port's name
// and protocol, "" for nobody.
func (s *said) at(number string) (protocol, address string) {
	for _, ip := range []string{"127.0.0.1:", "0.0.0.0:"} {
		for _, p := range s.ports {
			if p.address == ip+number && p.protocol != "http3" {
				return p.protocol, p.address
			}
		}
		for _, at := range s.tcp {
			if at == ip+number {
				return "tcp", at
			}
		}
	}
	return "", ""
}

// body returns what an address answers a host.
func body(address, protocol, host string) string {
	tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer tr.CloseIdleConnections()
	rq := must(http.NewRequest("GET", protocol+"://"+address+"/", nil))
	rq.Host = host
	rs, err := tr.RoundTrip(rq)
	if err != nil {
		return err.Error()
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(rs.Body)
	if err != nil {
		return err.Error()
	}
	if rs.StatusCode != 200 {
		return fmt.Sprint(rs.StatusCode)
	}
	return string(data)
}

// pings reports whether a stream comes back.
func pings(c net.Conn) error {
	c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, "ping\n"); err != nil {
		return err
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "ping\n" {
		return fmt.Errorf("got %q and %v", b, err)
	}
	return nil
}

// checkAll checks that everything is as it has to be at a moment when nothing moves.
func (w *world) checkAll() {
	w.lookAtFiles()
	w.lookAtHistory()
	w.lookAtEvents()
	w.lookAtPorts()
	w.lookAtGuests()
	w.lookAtHosts()
}

func (w *world) lookAtFiles() {
	data, err := os.ReadFile(w.file)
	if w.disk == "" && !errors.Is(err, os.ErrNotExist) || string(data) != w.disk {
		w.fault("the file says %q, want %q", first(string(data)), first(w.disk))
	}
	entries := must(os.ReadDir(w.dir))
	for _, e := range entries {
		if n := e.Name(); n != "headgate.yaml" && n != "state" {
			w.fault("there is a file %s", n)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "state", "intent.json")); err == nil {
		w.fault("an intent is left")
	}
	s := w.c.Status()
	if (s.Refused == nil) != w.seen {
		w.fault("refused is %+v, and the file is applied: %v", s.Refused, w.seen)
	}
	tag := ""
	if w.seen {
		tag = ETag(config.Documents{List: []config.Document{{Name: w.file, Data: []byte(w.disk)}}})
	}
	if w.c.ETag() != tag {
		w.fault("the ETag is %s, want %s", w.c.ETag(), tag)
	}
	wants := 0
	if s.Pending != nil {
		fmt.Sscanf(s.Pending.Revision, "%d", &wants)
	}
	if wants != w.pending {
		w.fault("revision %d waits, want %d", wants, w.pending)
	}
}

func first(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func (w *world) lookAtHistory() {
	list := w.c.Revisions(0, 1000)
	slices.Reverse(list)
	if len(list) != len(w.history) {
		w.fault("%d revisions, want %d", len(list), len(w.history))
		return
	}
	for i, r := range list {
		if r.Number != i+1 || r.State != w.history[i].state || len(r.Documents) != 1 || r.Documents[0].Digest != w.history[i].digest {
			w.fault("revision %d is %d, %s; want %s", i+1, r.Number, r.State, w.history[i].state)
		}
	}
}

func (w *world) lookAtEvents() {
	var verbs []Verb
	for _, e := range w.events {
		if e.Via == ViaDocker && e.Difference.Empty() {
			w.fault("an event of discovery tells of nothing")
		}
		verbs = append(verbs, e.Verb)
	}
	if !slices.Equal(verbs, w.verbs) {
		w.fault("the events are %v, want %v", verbs, w.verbs)
	}
	good, bad := 0, 0
	for _, v := range verbs {
		switch v {
		case Applied, Reverted:
			good++
		case RefusedVerb:
			bad++
		}
	}
	var page bytes.Buffer
	rec := httptest.NewRecorder()
	w.c.metrics.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	page.Write(rec.Body.Bytes())
	for _, line := range []string{
		fmt.Sprintf("headgate_config_applies_total{result=\"applied\"} %d\n", good), fmt.Sprintf("headgate_config_applies_total{result=\"refused\"} %d\n", bad),
	} {
		if !strings.Contains(page.String(), line) {
			w.fault("the metrics lack %s: %s", line, lines(page.String(), "applies_total"))
		}
	}
	ok := 0
	if w.seen {
		ok = 1
	}
	if line := fmt.Sprintf("headgate_config_last_apply_successful %d\n", ok); !strings.Contains(page.String(), line) {
		w.fault("the metrics lack %s: %s", line, lines(page.String(), "apply_successful"))
	}
}

// openPorts returns the open ports by address and kind of socket.
func (w *world) openPorts() map[string]ports.State {
	all := map[string]ports.State{}
	for _, p := range w.c.Status().Ports {
		if p.State != "draining" {
			key := p.Address
			if p.Protocol == config.HTTP3 || p.Protocol == config.UDP {
				key = "udp/" + key
			}
			if _, twice := all[key]; twice {
				w.fault("%s stands twice in the status", key)
			}
			all[key] = p
		}
	}
	return all
}

func (w *world) lookAtPorts() {
	stands, want := w.openPorts(), map[string]string{}
	for name, p := range w.force.ports {
		if p.protocol == "http3" {
			want["udp/"+p.address] = name + " http3"
		} else {
			want[p.address] = name + " " + p.protocol
		}
	}
	for name, at := range w.force.tcp {
		want[at] = name + " tcp"
	}
	for name, at := range w.force.udp {
		want["udp/"+at] = name + " udp"
	}
	for key, p := range stands {
		if got := p.Name + " " + string(p.Protocol); want[key] != got {
			w.fault("%s is %s, want %q", key, got, want[key])
		}
	}
	for key, what := range want {
		if _, ok := stands[key]; !ok {
			w.fault("%s, %s, is missing in the status", key, what)
		}
	}
	for _, number := range w.ports {
		w.lookAtNumber(number, stands)
		if at, ok := stands["udp/127.0.0.1:"+number]; ok && at.Protocol == config.UDP && at.State == "listening" {
			c, err := net.Dial("udp", "127.0.0.1:"+number)
			if err == nil {
				err = pings(c)
				c.Close()
			}
			if err != nil {
				w.fault("UDP %s: %v", number, err)
			}
		}
	}
}

func (w *world) lookAtNumber(number string, stands map[string]ports.State) {
	at := "127.0.0.1:" + number
	protocol, address := w.force.at(number)
	if w.foreign[number] != nil {
		if protocol != "" && stands[address].State != "waiting" {
			w.fault("%s is %s, and somebody else has it", address, stands[address].State)
		}
		return
	}
	switch protocol {
	case "http", "https":
		if stands[address].State == "waiting" {
			return
		}
		if got := body(at, protocol, "other.example"); got != w.force.name {
			w.fault("%s %s answers %s, want %s", protocol, at, got, w.force.name)
		}
	case "tcp":
		if stands[address].State == "waiting" {
			return
		}
		c, err := net.Dial("tcp", at)
		if err == nil {
			err = pings(c)
			c.Close()
		}
		if err != nil {
			w.fault("TCP %s: %v", at, err)
		}
	default:
		for tries := 0; ; tries++ {
			c, err := net.DialTimeout("tcp", at, time.Second)
			if err != nil {
				break
			}
			c.Close()
			if tries > 1000 {
				w.fault("%s is open, and nobody wants it", at)
				break
			}
			testhouse.Pause()
		}
	}
}

func (w *world) lookAtGuests() {
	stands := w.openPorts()
	w.guests = slices.DeleteFunc(w.guests, func(g *guest) bool {
		p, ok := stands[g.address]
		if ok && p.Since.Equal(g.since) && string(p.Protocol) == g.protocol {
			if g.stream {
				if err := pings(g); err != nil {
					w.fault("a stream at %s ended by a change that does not concern it: %v", g.address, err)
					return true
				}
				return false
			}
			g.SetDeadline(time.Now().Add(patience))
			if got := g.request(); got != w.force.name {
				w.fault("a connection at %s got %s, want %s", g.address, got, w.force.name)
				g.Close()
				return true
			}
			return false
		}
		if !g.stream {
			g.SetDeadline(time.Now().Add(patience))
			if b, err := g.r.ReadByte(); !errors.Is(err, io.EOF) {
				w.fault("a connection at %s, which is gone, got %q and %v", g.address, b, err)
			}
		}
		g.Close()
		return true
	})
}

// request sends a request on a connection that stays open.
func (g *guest) request() string {
	if _, err := io.WriteString(g, "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"); err != nil {
		return err.Error()
	}
	rs, err := http.ReadResponse(g.r, nil)
	if err != nil {
		return err.Error()
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(rs.Body)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// lookAtHosts asks for the hosts that were discovered.
func (w *world) lookAtHosts() {
	number := ""
	for _, n := range w.ports {
		if protocol, _ := w.force.at(n); protocol == "http" && w.foreign[n] == nil {
			number = n
		}
	}
	if number == "" || w.openPorts()["127.0.0.1:"+number].State == "waiting" {
		return
	}
	at := "127.0.0.1:" + number
	for i := range 3 {
		want := w.force.name
		if !w.force.hosts[i] && w.force.docker && slices.Contains(w.found, i) {
			want = "app"
		}
		if got := body(at, "http", fmt.Sprintf("d%d.example", i)); got != want {
			w.fault("d%d.example answers %s, want %s", i, got, want)
		}
	}
	want, stands := "app", 0
	if w.held {
		want, stands = "503", 1
	}
	if got := body(at, "http", "held.example"); got != want || len(w.c.HeldServers()) != stands {
		w.fault("held.example answers %s, want %s; %v", got, want, w.c.HeldServers())
	}
}
