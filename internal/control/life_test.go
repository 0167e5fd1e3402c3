package control

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery/discoverytest"
	"headgate/internal/exchange"
	"headgate/internal/store/history"
	"headgate/internal/testhouse"
)

// TestRandomLives lets operators, editors of the file, containers, other processes and
// restarts do anything in any order. What is served is what the file, the history, the
// status and the events tell, after every step.
func TestRandomLives(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "app") }))
	t.Cleanup(app.Close)
	_, port, _ := net.SplitHostPort(app.Listener.Addr().String())
	echo := testhouse.Server(t, func(c net.Conn) { io.Copy(c, c) })
	udp := must(net.ListenPacket("udp", echo))
	t.Cleanup(func() { udp.Close() })
	go func() {
		b := make([]byte, 100)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			udp.WriteTo(b[:n], from)
		}
	}()
	t.Parallel()
	testhouse.Lives(t, 1, 2, func(t *testing.T, seed uint64) {
		w := newWorld(t, "http://127.0.0.1:"+port, echo)
		told := w.live(seed, 30)
		if len(w.wrong) > 0 {
			t.Fatalf("%s\n\n%s", strings.Join(told, "\n"), strings.Join(w.wrong, "\n"))
		}
	})
}

// live is one life of random moves.
func (w *world) live(seed uint64, moves int) (told []string) {
	r := rand.New(rand.NewPCG(seed, 0))
	draw := func(n int) int { return r.IntN(n) }
	w.force = w.random(draw)
	for !w.force.valid {
		w.force = w.random(draw)
	}
	w.disk = w.force.text
	w.save(w.disk)
	w.open()
	w.startControl()
	told = append(told, "begin "+w.force.text)
	w.checkAll()
	for i := 0; i < moves && len(w.wrong) == 0; i++ {
		what := w.move(draw)
		told = append(told, fmt.Sprintf("%d %s", i+1, what))
		w.checkAll()
	}
	for _, g := range w.guests {
		g.Close()
	}
	if w.c != nil {
		w.c.close()
	}
	for _, l := range w.foreign {
		l.Close()
	}
	return told
}

func (w *world) save(text string) {
	if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
		w.fault("%v", err)
	}
}

// startControl starts the control, which is to serve the file, or the newest confirmed revision.
func (w *world) startControl() {
	if w.c == nil {
		return
	}
	w.said, w.found = nil, nil
	if err := w.c.start(); err != nil {
		w.fault("it does not start: %v", err)
		return
	}
	w.c.ready.Store(true)
	w.remember(history.Confirmed, false)
	w.seen, w.verbs = true, append(w.verbs, Applied)
}

// remember notes a revision of the file, unless it is the newest and nothing was written.
func (w *world) remember(state history.State, wrote bool) {
	d := history.DigestOf([]byte(w.disk))
	if n := len(w.history); n > 0 && w.history[n-1].digest == d && state == history.Confirmed && !wrote {
		return
	}
	w.history = append(w.history, rev{d, state})
}

// serves notes that a configuration is in force.
func (w *world) serves(s said) {
	w.force = s
	if !s.docker {
		w.said = nil
	}
	w.found = w.said
}

// move makes one move, and tells of it.
func (w *world) move(draw func(int) int) string {
	switch k := draw(20); {
	case k < 6:
		return w.edit(draw)
	case k < 9:
		return w.byHand(draw)
	case k < 11:
		return w.decide(draw)
	case k < 13:
		return w.containers(draw)
	case k < 15:
		return w.others(draw)
	case k < 18:
		return w.connect(draw)
	case k < 19:
		return w.hold(draw)
	}
	return w.restart()
}

// edit makes a change by the API.
func (w *world) edit(draw func(int) int) string {
	next := w.random(draw)
	what := "edit"
	if draw(6) == 0 && len(w.history) > 1 {
		n := 1 + draw(len(w.history))
		_, docs, err := w.c.Revision(n)
		if err != nil {
			w.fault("revision %d: %v", n, err)
			return what
		}
		what = fmt.Sprintf("roll back to %d", n)
		next.text = string(docs.List[0].Data)
		old, ok := w.parse(next.text)
		if !ok {
			w.fault("revision %d is nothing that was said", n)
		}
		next = old
	}
	e := replaceWith(Cause{Who: "ann", Via: ViaAPI}, next.text)
	switch draw(8) {
	case 0:
		e.IfMatch = `"stale"`
		what += " stale"
	case 1, 2, 3:
		_, e.IfMatch, _ = w.c.Documents()
	}
	if draw(4) == 0 {
		e.ConfirmWithin = time.Hour
		what += " to be confirmed"
	}
	if draw(6) == 0 {
		e.DryRun = true
		what += " dry"
	}
	what += " " + next.text
	ev, err := w.c.Change(e)
	if err != nil {
		w.refusedBy(err, next, e)
		if w.pending == 0 && !e.DryRun {
			w.verbs = append(w.verbs, RefusedVerb)
		}
		return what + " refused: " + err.Error()
	}
	if e.IfMatch == `"stale"` || w.pending != 0 || !next.valid {
		w.fault("it was taken")
	}
	if e.DryRun {
		return what + " ok"
	}
	wrote := w.disk != next.text
	w.disk, w.seen = next.text, true
	if e.ConfirmWithin > 0 {
		w.pending, w.before = len(w.history)+1, ""
		w.remember(history.Applied, wrote)
	} else {
		w.remember(history.Confirmed, wrote)
	}
	w.serves(next)
	w.verbs = append(w.verbs, Applied)
	if ev.Revision != fmt.Sprintf("%08d", len(w.history)) || w.c.Status().Revision != ev.Revision {
		w.fault("the event tells of revision %s, the status of %s", ev.Revision, w.c.Status().Revision)
	}
	return what + " ok"
}

// refusedBy looks whether there was a reason.
func (w *world) refusedBy(err error, next said, e Edit) {
	var pending *ConfirmPending
	var stale *Stale
	switch {
	case errors.As(err, &pending):
		if w.pending == 0 {
			w.fault("nothing waits: %v", err)
		}
	case errors.As(err, &stale):
		if e.IfMatch != `"stale"` {
			w.fault("it is not stale: %v", err)
		}
	default:
		w.mayRefuse(err, next)
	}
}

// mayRefuse looks whether there was a reason to refuse a configuration.
func (w *world) mayRefuse(err error, next said) {
	var r *Refused
	errors.As(err, &r)
	if len(r.Problems) > 0 {
		if next.valid {
			w.fault("it is valid: %v", err)
		}
		return
	}
	for _, p := range w.wanted(next) {
		_, number, _ := net.SplitHostPort(p)
		if w.foreign[number] != nil && strings.Contains(err.Error(), p) {
			return
		}
	}
	w.fault("there is no reason to refuse: %v", err)
}

// wanted returns the addresses of TCP that a configuration wants.
func (w *world) wanted(s said) (all []string) {
	for _, p := range s.ports {
		if p.protocol != "http3" {
			all = append(all, p.address)
		}
	}
	for _, at := range s.tcp {
		all = append(all, at)
	}
	return all
}

// byHand writes the file.
func (w *world) byHand(draw func(int) int) string {
	next := w.random(draw)
	what := "by hand"
	if draw(4) == 0 {
		next = w.force
		what = "by hand what is in force"
	}
	same := w.disk == next.text && w.seen
	w.disk = next.text
	w.save(w.disk)
	var err error
	if draw(3) == 0 {
		what += " reload"
		same = false
		err = w.c.Reload()
	} else {
		w.c.changed()
	}
	if same {
		return what + " that was so"
	}
	if w.pending != 0 && history.DigestOf([]byte(w.disk)) != w.history[w.pending-1].digest {
		w.history[w.pending-1].state, w.pending = history.Confirmed, 0
		w.verbs = append(w.verbs, Confirmed)
	}
	if s := w.c.Status(); s.Refused != nil {
		if next.valid && err == nil && !w.blocked(next) {
			w.fault("there is no reason to refuse: %v", s.Refused)
		}
		w.seen = false
		w.verbs = append(w.verbs, RefusedVerb)
		return what + " " + next.text + " refused"
	}
	w.seen = true
	w.verbs = append(w.verbs, Applied)
	if w.pending == 0 {
		w.remember(history.Confirmed, false)
	}
	w.serves(next)
	return what + " " + next.text + " ok"
}

// blocked reports whether somebody has an address that a configuration wants.
func (w *world) blocked(s said) bool {
	return slices.ContainsFunc(w.wanted(s), func(p string) bool {
		_, number, _ := net.SplitHostPort(p)
		return w.foreign[number] != nil
	})
}

// decide confirms what waits, or reverts it.
func (w *world) decide(draw func(int) int) string {
	if w.pending == 0 {
		if err := w.c.Confirm(Cause{}); !errors.Is(err, ErrNothingPending) {
			w.fault("confirm: %v", err)
		}
		return "confirm nothing"
	}
	name := fmt.Sprintf("%08d", w.pending)
	if draw(2) == 0 {
		if err := w.c.ConfirmRevision(Cause{Who: "ann", Via: ViaAPI}, name); err != nil {
			w.fault("confirm: %v", err)
		}
		w.history[w.pending-1].state, w.pending = history.Confirmed, 0
		w.verbs = append(w.verbs, Confirmed)
		return "confirm"
	}
	before, ok := w.parse(w.textOf(w.pending - 1))
	if !ok {
		w.fault("what was before is nothing that was said")
		return "revert"
	}
	var err error
	what := "revert"
	if draw(2) == 0 {
		err = w.c.RevertRevision(name, nil)
	} else {
		what = "time is over"
		w.c.revert(w.pending)
		if w.c.Pending() != nil {
			err = errors.New("it waits still")
		}
	}
	if err != nil {
		if !w.blocked(before) {
			w.fault("%s: %v", what, err)
		}
		w.verbs = append(w.verbs, RefusedVerb)
		return what + " refused"
	}
	w.reverted(before)
	return what
}

// reverted notes that what was before a change came back.
func (w *world) reverted(before said) {
	w.history[w.pending-1].state, w.pending = history.RolledBack, 0
	w.disk, w.seen = before.text, true
	w.history = append(w.history, rev{history.DigestOf([]byte(w.disk)), history.Confirmed})
	w.verbs = append(w.verbs, Reverted)
	w.serves(before)
}

func (w *world) textOf(number int) string {
	_, docs, err := w.c.Revision(number)
	if err != nil {
		w.fault("revision %d: %v", number, err)
		return ""
	}
	return string(docs.List[0].Data)
}

// containers come and go.
func (w *world) containers(draw func(int) int) string {
	if !w.force.docker {
		w.c.discovered(false)
		return "no discovery"
	}
	w.said = nil
	var all []*config.Discovered
	for i := range 3 {
		if draw(2) == 0 {
			w.said = append(w.said, i)
			all = append(all, discoverytest.Proxy(fmt.Sprintf("d%d", i), i, w.app, fmt.Sprintf("virtual_hosts=d%d.example", i)))
		}
	}
	for _, f := range w.engines.All("local") {
		if f.Running() {
			f.Find(all...)
		}
	}
	if draw(3) == 0 {
		return fmt.Sprintf("containers %v, soon", w.said)
	}
	same := slices.Equal(w.inForce(w.said), w.inForce(w.found))
	w.c.discovered(false)
	w.found = w.said
	if !same {
		w.verbs = append(w.verbs, Applied)
	}
	return fmt.Sprintf("containers %v", w.said)
}

// inForce returns which of the discovered objects nothing by hand stands against.
func (w *world) inForce(found []int) (all []int) {
	for _, i := range found {
		if !w.force.hosts[i] {
			all = append(all, i)
		}
	}
	return all
}

// others take addresses, or let go of them.
func (w *world) others(draw func(int) int) string {
	number := w.ports[draw(len(w.ports))]
	if l := w.foreign[number]; l != nil {
		l.Close()
		delete(w.foreign, number)
		for kind := range map[string]bool{"ports": true, "tcp_proxies": true} {
			for name := range w.force.ports {
				w.c.ResetPort(kind, name)
			}
			for name := range w.force.tcp {
				w.c.ResetPort(kind, name)
			}
		}
		for _, g := range w.guests {
			g.Close()
		}
		w.guests = nil
		return "free " + number
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+number)
	if err != nil {
		return "take " + number + ": " + err.Error()
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	w.foreign[number] = l
	return "take " + number
}

// connect opens a connection that stays.
func (w *world) connect(draw func(int) int) string {
	number := w.ports[draw(len(w.ports))]
	protocol, address := w.force.at(number)
	if protocol != "http" && protocol != "tcp" || w.foreign[number] != nil {
		return "connect to nothing"
	}
	c, err := connect("127.0.0.1:" + number)
	if err != nil {
		w.fault("%v", err)
		return "connect"
	}
	g := &guest{client: c, address: address, since: w.openPorts()[address].Since, stream: protocol == "tcp", protocol: protocol}
	w.guests = append(w.guests, g)
	return "connect to " + protocol + " " + number
}

// hold holds the server of held.example, or lets it go.
func (w *world) hold(draw func(int) int) string {
	hold := exchange.HeldDraining
	if w.held {
		hold = exchange.NotHeld
	}
	if _, err := w.c.Hold(w.t.Context(), HeldServer{Kind: "proxies", Proxy: "held", Server: w.app}, hold); err != nil {
		w.fault("hold: %v", err)
	}
	w.held = !w.held
	return fmt.Sprintf("hold %v", w.held)
}

// restart ends the control and starts another.
func (w *world) restart() string {
	for _, g := range w.guests {
		g.Close()
	}
	w.guests = nil
	w.c.close()
	w.open()
	if w.c == nil {
		return "restart"
	}
	if w.pending != 0 {
		if history.DigestOf([]byte(w.disk)) == w.history[w.pending-1].digest {
			before, ok := w.parse(w.textOf(w.pending - 1))
			if !ok {
				w.fault("what was before is nothing that was said")
			}
			w.said = nil
			if err := w.c.start(); err != nil {
				w.fault("it does not start: %v", err)
			}
			w.reverted(before)
			return "restart, reverted"
		}
	}
	next, ok := w.parse(w.disk)
	if ok && next.valid {
		w.force = next
		w.startControl()
		return "restart"
	}
	w.said, w.found = nil, nil
	if err := w.c.start(); err != nil {
		w.fault("it does not start: %v", err)
	}
	for i, r := range slices.Backward(w.history) {
		if r.state == history.Confirmed {
			back, ok := w.parse(w.textOf(i + 1))
			if !ok {
				w.fault("what was confirmed is nothing that was said")
			}
			w.serves(back)
			break
		}
	}
	w.seen, w.verbs = false, append(w.verbs, RefusedVerb, FellBack)
	return "restart, fell back"
}
