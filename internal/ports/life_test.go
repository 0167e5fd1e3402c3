package ports_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/metrics"
	"headgate/internal/plan"
	"headgate/internal/ports"
	"headgate/internal/testhouse"
)

// TestRandomLives lets configurations, other processes and clients do anything with a few
// port numbers. After every step exactly the ports of the configuration that was committed
// are listening, or waiting for an address that another process has; each serves by the
// newest plan, connections on ports that stay are not closed, and a change that is refused
// or cancelled leaves no socket. -lives leads more of them.
func TestRandomLives(t *testing.T) {
	echo := testhouse.Server(t, func(c net.Conn) { io.Copy(c, c); c.Close() })
	testhouse.Lives(t, 1, 3, func(t *testing.T, seed uint64) {
		w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), echo: echo, numbers: testhouse.Ports(t, 5), others: map[string]net.Listener{}, log: &testhouse.Log{}}
		w.set = ports.New(ports.Options{
			Log: slog.New(slog.NewTextHandler(w.log, nil)), Metrics: metrics.New(metrics.Build{}), Current: &w.current,
			Pace: ports.Pace{First: time.Hour, Last: time.Hour},
		})
		for step := range 30 {
			what := w.step()
			w.trail = append(w.trail, what)
			w.check()
			if t.Failed() {
				t.Fatalf("step %d; the last steps: %s\nlog:\n%s", step, strings.Join(w.trail[max(0, len(w.trail)-8):], "\n"), w.log.String())
			}
		}
		w.end()
	})
}

// world is a Set with what has to be true of it.
type world struct {
	t       *testing.T
	r       *rand.Rand
	echo    string
	numbers []string
	set     *ports.Set
	current atomic.Pointer[plan.Plan]
	log     *testhouse.Log

	wants   map[string]wish         // by number
	waiting map[string]bool         // numbers whose address was busy at the start
	others  map[string]net.Listener // of other processes, by number
	guests  []*guest
	serial  int // of the newest configuration
	trail   []string
}

// wish is a port of a configuration.
type wish struct{ name, protocol string }

// guest is a connection that is kept over changes.
type guest struct {
	net.Conn
	r        *bufio.Reader
	number   string
	protocol string
}

func (w *world) step() string {
	switch n := w.r.IntN(12); {
	case w.current.Load() == nil || n < 4:
		return w.change(false)
	case n < 6:
		return w.change(true)
	case n < 8:
		return w.other()
	case n < 10:
		return w.visit()
	case n < 11:
		return w.reset()
	}
	return w.leave()
}

// random makes up a configuration: its text, and the ports in it.
func (w *world) random() (text string, wants map[string]wish) {
	wants = map[string]wish{}
	var http, tcp strings.Builder
	for _, number := range w.numbers {
		// Names go from number to number: a port is found by its address.
		name := fmt.Sprint("p", w.r.IntN(1000))
		if slices.ContainsFunc(slices.Collect(maps.Values(wants)), func(o wish) bool { return o.name == name }) {
			continue
		}
		switch w.r.IntN(5) {
		case 0, 1:
			wants[number] = wish{name, "http"}
			fmt.Fprintf(&http, "  %s: {address: \"127.0.0.1:%s\", protocol: http}\n", name, number)
		case 2:
			wants[number] = wish{name, "tcp"}
			fmt.Fprintf(&tcp, "  %s: {address: \"127.0.0.1:%s\", servers: [{address: %q}]}\n", name, number, w.echo)
		}
	}
	text = fmt.Sprintf("version: 1\nproxies:\n  all: {routes: [{fixed_response: {status: 200, body: \"plan %d\"}}]}\n", w.serial+1)
	if http.Len() > 0 {
		text += "ports:\n" + http.String()
	}
	if tcp.Len() > 0 {
		text += "tcp_proxies:\n" + tcp.String()
	}
	return text, wants
}

// change prepares a configuration, and commits it, or cancels it.
func (w *world) change(cancelled bool) string {
	text, wants := w.random()
	cfg, _, problems := config.Load("headgate.yaml", []byte(text))
	if len(problems) > 0 {
		w.t.Fatalf("%v\n%s", problems, text)
	}
	previous := w.current.Load()
	next, problems := plan.Compile(cfg, previous, plan.House{}, nil)
	if len(problems) > 0 {
		w.t.Fatalf("%v\n%s", problems, text)
	}
	busy, waits := "", map[string]bool{}
	for number := range wants {
		if w.others[number] == nil || w.listens(number) {
			continue
		}
		if previous == nil || w.waiting[number] {
			waits[number] = true
		} else {
			busy = number
		}
	}
	ch, err := w.set.Prepare(next, previous)
	switch {
	case (err != nil) != (busy != ""):
		w.t.Errorf("Prepare = %v; another process has %q\n%s", err, busy, text)
		if err == nil {
			ch.Cancel()
		}
		return "change"
	case err != nil:
		next.Retire(previous)
		return "refused: " + text
	case cancelled:
		ch.Cancel()
		next.Retire(previous)
		return "cancelled: " + text
	}
	w.current.Store(next)
	ch.Commit()
	next.Start()
	if previous != nil {
		previous.Retire(next)
	}
	w.serial++
	w.wants, w.waiting = wants, waits
	return "change: " + text
}

// listens reports whether the set has a socket at a number.
func (w *world) listens(number string) bool {
	_, wanted := w.wants[number]
	return wanted && !w.waiting[number]
}

// other is another process that takes a number, or leaves one.
func (w *world) other() string {
	number := w.numbers[w.r.IntN(len(w.numbers))]
	if l := w.others[number]; l != nil {
		l.Close()
		delete(w.others, number)
		return "another process leaves " + number
	}
	if w.listens(number) {
		if l, err := net.Listen("tcp", "127.0.0.1:"+number); err == nil {
			l.Close()
			w.t.Errorf("another process can listen at %s, at which the set does", number)
		}
		return "another process cannot take " + number
	}
	// A socket that is closed first accepts the connections that the system still holds.
	testhouse.Eventually(w.t, "the address "+number+" is free", func() bool {
		l, err := net.Listen("tcp", "127.0.0.1:"+number)
		if err == nil {
			w.others[number] = l
		}
		return err == nil
	})
	return "another process takes " + number
}

// visit opens a connection that stays.
func (w *world) visit() string {
	for number, p := range w.wants {
		if w.waiting[number] || w.r.IntN(2) == 0 {
			continue
		}
		c, err := net.Dial("tcp", "127.0.0.1:"+number)
		if err != nil {
			w.t.Errorf("dial %s: %v", number, err)
			return "visit"
		}
		g := &guest{Conn: c, r: bufio.NewReader(c), number: number, protocol: p.protocol}
		if err := g.talk(w.serial); err != nil {
			w.t.Errorf("a new connection at %s, %s: %v", number, p.protocol, err)
		}
		w.guests = append(w.guests, g)
		return "visit " + number
	}
	return "nowhere to visit"
}

// talk sends a request, or bytes that come back.
func (g *guest) talk(serial int) error {
	g.SetDeadline(time.Now().Add(time.Minute))
	if g.protocol == "tcp" {
		if _, err := io.WriteString(g, "hello\n"); err != nil {
			return err
		}
		if line, err := g.r.ReadString('\n'); err != nil || line != "hello\n" {
			return fmt.Errorf("got %q, %v", line, err)
		}
		return nil
	}
	if _, err := io.WriteString(g, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); err != nil {
		return err
	}
	rs, err := http.ReadResponse(g.r, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(rs.Body)
	if want := fmt.Sprint("plan ", serial); err != nil || string(body) != want {
		return fmt.Errorf("got %q, %v; want %q", body, err, want)
	}
	return nil
}

// reset closes what is open on a port; one that waits is opened if it can be.
func (w *world) reset() string {
	for number, p := range w.wants {
		if w.r.IntN(2) == 0 {
			continue
		}
		w.set.Reset(p.name, func(protocol config.Protocol) bool { return string(protocol) == p.protocol })
		if w.waiting[number] && w.others[number] == nil {
			delete(w.waiting, number)
		}
		for _, g := range w.guests {
			if g.number == number {
				g.Close()
			}
		}
		w.guests = slices.DeleteFunc(w.guests, func(g *guest) bool { return g.number == number })
		return "reset " + number
	}
	return "nothing to reset"
}

// leave closes the connections of clients.
func (w *world) leave() string {
	for _, g := range w.guests {
		g.Close()
	}
	w.guests = nil
	return "all clients leave"
}

// check looks at what the set says of itself, and at what clients see.
func (w *world) check() {
	stands := map[string]string{}
	for _, s := range w.set.States() {
		number := fmt.Sprint(netip.MustParseAddrPort(s.Address).Port())
		if s.State == "draining" {
			continue
		}
		if stands[number] != "" {
			w.t.Errorf("%s stands twice: %s, %s", number, stands[number], s.State)
		}
		stands[number] = fmt.Sprint(s.State, " ", s.Name, " ", s.Protocol)
	}
	for number, p := range w.wants {
		want := fmt.Sprint("listening ", p.name, " ", p.protocol)
		if w.waiting[number] {
			want = fmt.Sprint("waiting ", p.name, " ", p.protocol)
		}
		if stands[number] != want {
			w.t.Errorf("%s is %q, want %q", number, stands[number], want)
		}
		if w.waiting[number] {
			continue
		}
		c, err := net.Dial("tcp", "127.0.0.1:"+number)
		if err != nil {
			w.t.Errorf("dial %s: %v", number, err)
			continue
		}
		g := &guest{Conn: c, r: bufio.NewReader(c), number: number, protocol: p.protocol}
		if err := g.talk(w.serial); err != nil {
			w.t.Errorf("at %s, %s: %v", number, p.protocol, err)
		}
		c.Close()
	}
	if len(stands) != len(w.wants) {
		w.t.Errorf("there are %v, want %v", stands, w.wants)
	}
	w.guests = slices.DeleteFunc(w.guests, w.gone)
}

// gone reports whether the port of a guest has gone or speaks another protocol now. All
// others are served as before, by the newest plan.
func (w *world) gone(g *guest) bool {
	if w.wants[g.number].protocol != g.protocol || w.waiting[g.number] {
		g.Close()
		return true
	}
	if err := g.talk(w.serial); err != nil {
		w.t.Errorf("a connection at %s, %s, that was kept: %v", g.number, g.protocol, err)
		g.Close()
		return true
	}
	return false
}

// end closes the set: all connections end, and every address is free.
func (w *world) end() {
	w.leave()
	w.set.Close()
	w.set.Wait()
	if p := w.current.Load(); p != nil {
		p.Retire(nil)
	}
	for _, number := range w.numbers {
		if w.others[number] != nil {
			w.others[number].Close()
		}
		testhouse.Eventually(w.t, number+" is free at the end", func() bool {
			l, err := net.Listen("tcp", "127.0.0.1:"+number)
			if err == nil {
				l.Close()
			}
			return err == nil
		})
	}
	if left := w.set.States(); len(left) > 0 {
		w.t.Errorf("at the end there are %v", left)
	}
}
