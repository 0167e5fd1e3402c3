package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/testhouse"
)

// TestRandomLives lets containers and their engine do anything at random, by a clock of
// the test's own. While the engine is away what was found stays; when all has been quiet
// for a while, what is told is what somebody is told who asks now for the first time; and
// at the end nothing is open and nothing is remembered of what is gone.
func TestRandomLives(t *testing.T) {
	testhouse.Lives(t, 80, 6, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { live(t, seed) })
	})
}

func live(t *testing.T, seed uint64) {
	s, err := open("local", &config.Docker{Endpoint: "unix:///run/none.sock"}, discovery.Environment{}, here{reaches: true})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{r: rand.New(rand.NewPCG(seed, 0))}
	s.engine.client.Transport = m
	m.change(func() {})
	s.Start()
	for range 6 {
		for range 4 + m.draw(30) {
			m.act()
			time.Sleep(time.Duration(m.draw(3000)) * time.Millisecond)
			if m.draw(8) == 0 {
				m.away(t, s)
			}
		}
		m.quiet()
		time.Sleep(4 * time.Minute) // a failed attempt, an attempt again, a listing; and who starts is ready
		m.compare(t, s)
		if t.Failed() {
			t.Log(strings.Join(m.told, "\n"))
			break
		}
	}
	s.Stop()
	synctest.Wait()
	if n := m.open.Load(); n != 0 {
		t.Errorf("%d answers are open", n)
	}
}

// machine is an engine of whose containers all is made up.
type machine struct {
	mu      sync.Mutex
	r       *rand.Rand
	all     []*made
	lists   []listed // what it told, and since when
	streams map[*io.PipeWriter]chan string
	mode    mode
	lag     time.Duration // by which its lists are late
	wild    bool          // events are lost and doubled
	count   int
	open    atomic.Int32
	told    []string
}

type listed struct {
	at   time.Time
	list []made
}

// made is a container that is made up.
type made struct {
	id, name, state, health, address string
	labels                           map[string]string
	started                          time.Time
	created                          int64
}

// mode is how an engine answers.
type mode int

const (
	works mode = iota
	slow
	half
	broken
	hangs
	away
	deaf  // it has no events
	picky // it refuses versions, after a while
	modes
)

func (m *machine) draw(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.r.IntN(n)
}

// change changes containers, which is listed from now on.
func (m *machine) change(what func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	what()
	list := make([]made, len(m.all))
	for i, c := range m.all {
		list[i] = *c
	}
	m.lists = append(m.lists, listed{time.Now(), list})
}

// emit sends an event, unless it gets lost.
func (m *machine) emit(c *made, action string, attributes map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, fmt.Sprintf("%s %s %s, mode %d", time.Now().Format("04:05.000"), c.name, action, m.mode))
	times := 1
	if m.wild {
		times = [...]int{0, 1, 1, 1, 2}[m.r.IntN(5)]
	}
	text, _ := json.Marshal(map[string]any{"Type": "container", "Action": action, "Actor": map[string]any{"ID": c.id, "Attributes": attributes}})
	for range times {
		for _, s := range m.streams {
			select {
			case s <- string(text) + "\n":
			default:
			}
		}
	}
}

// away has the engine be away for a while, and looks at what is told meanwhile.
func (m *machine) away(t *testing.T, s *Source) {
	m.set(away)
	time.Sleep(2*time.Minute + time.Duration(m.draw(120))*time.Second)
	first := s.Snapshot()
	for range 3 {
		m.act()
		m.set(away)
		time.Sleep(time.Duration(m.draw(60)) * time.Second)
	}
	if last := s.Snapshot(); last.State != discovery.Failed || last.Reason == "" || !slices.Equal(first.Objects, last.Objects) || last.Known != first.Known {
		t.Errorf("the engine is away, and it is told as %s (%s)\n%s\nafter\n%s", last.State, last.Reason, story(last), story(first))
	}
	m.set(works)
}

// set has the engine answer in a way from now on. What was asked goes on as it began.
func (m *machine) set(how mode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mode = how
	m.told = append(m.told, fmt.Sprintf("%s mode %d", time.Now().Format("04:05.000"), how))
	if how == away || how == broken {
		m.cut()
	}
}

// cut ends the streams of events.
func (m *machine) cut() {
	for _, s := range m.streams {
		close(s)
	}
	m.streams = nil
}

// quiet ends what is random.
func (m *machine) quiet() {
	m.set(works)
	m.mu.Lock()
	m.lag, m.wild = 0, false
	m.cut()
	m.mu.Unlock()
	for _, c := range slices.Clone(m.all) {
		if c.state == "ending" {
			m.die(c)
		}
	}
}

// act has something happen.
func (m *machine) act() {
	var c *made
	if n := len(m.all); n > 0 {
		c = m.all[m.draw(n)]
	}
	switch m.draw(14) {
	case 0, 1, 2:
		m.run()
	case 3, 4:
		if c != nil && c.state == "running" {
			m.change(func() { c.state = "ending" })
			m.emit(c, "kill", map[string]string{"signal": [...]string{"15", "9", "SIGINT"}[m.draw(3)]})
		}
	case 5, 6, 7:
		if c == nil || c.state == "paused" {
			return
		}
		m.die(c)
		if m.draw(2) == 0 {
			time.Sleep(time.Duration(m.draw(3000)) * time.Millisecond)
			m.start(c)
		}
	case 8:
		if c != nil && c.state != "ending" {
			was, now := c.state, "paused"
			if was == now {
				now = "running"
			}
			m.change(func() { c.state = now })
			m.emit(c, map[string]string{"paused": "pause", "running": "unpause"}[now], nil)
		}
	case 9, 10:
		if c != nil && c.health != "" {
			m.change(func() { c.health = [...]string{"healthy", "unhealthy", "healthy"}[m.draw2(3)] })
			m.emit(c, "health_status: "+c.health, nil)
		}
	case 11:
		if c != nil {
			m.change(func() { c.address = fmt.Sprintf("172.18.0.%d", 2+m.draw2(200)) })
			m.emit(c, "update", nil)
		}
	case 12:
		m.set(mode(m.draw(int(modes))))
	case 13:
		m.mu.Lock()
		m.lag, m.wild = time.Duration(m.r.IntN(4000))*time.Millisecond, m.r.IntN(2) == 0
		if m.r.IntN(2) == 0 {
			m.cut()
		}
		m.mu.Unlock()
	}
}

// draw2 is draw while the lock is held.
func (m *machine) draw2(n int) int { return m.r.IntN(n) }

// run starts a new container.
func (m *machine) run() {
	m.count++
	name := fmt.Sprintf("c%d", m.count)
	c := &made{id: fmt.Sprintf("%064d", m.count), name: name, created: time.Now().Unix()}
	c.labels = map[string]string{"headgate.host": fmt.Sprintf("%s.example", name), composeProject: "p", composeService: fmt.Sprint("s", m.draw(4))}
	switch m.draw(6) {
	case 0:
		c.labels["headgate.prot"] = "81" // wrong
	case 1:
		c.labels["headgate.proxies.one.virtual_hosts"] = "one.example"
		delete(c.labels, composeService)
	case 2:
		c.labels["headgate.host"] = "same.example"
	case 3:
		c.labels["headgate.host"] = "same.example"
	case 4:
		delete(c.labels, "headgate.host")
	}
	if m.draw(2) == 0 {
		c.health = "starting"
	}
	c.address = fmt.Sprintf("172.18.0.%d", 2+m.count%250)
	m.start(c)
}

func (m *machine) start(c *made) {
	m.change(func() {
		c.state, c.started = "running", time.Now()
		if c.health != "" {
			c.health = "starting"
		}
		m.all = append([]*made{c}, m.all...)
	})
	m.emit(c, "start", nil)
}

func (m *machine) die(c *made) {
	m.change(func() { m.all = slices.DeleteFunc(m.all, func(o *made) bool { return o == c }) })
	m.emit(c, "die", nil)
}

// json is what the engine tells of the container.
func (c *made) json() map[string]any {
	up := time.Since(c.started)
	text := "Less than a second"
	switch n := int(up.Seconds()); {
	case n == 1:
		text = "1 second"
	case n > 1 && n < 60:
		text = fmt.Sprint(n, " seconds")
	case n >= 60 && n < 120:
		text = "About a minute"
	case n >= 120:
		text = fmt.Sprint(n/60, " minutes")
	}
	state := c.state
	if state == "ending" {
		state = "running"
	}
	status := "Up " + text
	if c.health == "starting" {
		status += " (health: starting)"
	} else if c.health != "" {
		status += " (" + c.health + ")"
	}
	return map[string]any{
		"Id": c.id, "Names": []string{"/" + c.name}, "Created": c.created, "State": state, "Status": status, "Labels": c.labels,
		"Ports":           []map[string]any{{"PrivatePort": 80, "Type": "tcp"}},
		"NetworkSettings": map[string]any{"Networks": map[string]any{"web": map[string]any{"IPAddress": c.address}}},
	}
}

// list returns what the engine lists.
func (m *machine) list() string {
	var told []made
	for _, l := range m.lists {
		if l.at.After(time.Now().Add(-m.lag)) && told != nil {
			break
		}
		told = l.list
	}
	out := []any{}
	for _, c := range told {
		out = append(out, c.json())
	}
	text, _ := json.Marshal(out)
	return string(text)
}

// RoundTrip answers a call.
func (m *machine) RoundTrip(rq *http.Request) (*http.Response, error) {
	m.mu.Lock()
	how, wait := m.mode, time.Duration(m.r.IntN(20_000))*time.Millisecond
	m.mu.Unlock()
	switch how {
	case away:
		return nil, syscall.ECONNREFUSED
	case picky:
		select {
		case <-rq.Context().Done():
			return nil, rq.Context().Err()
		case <-time.After(wait / 10):
		}
		if strings.HasPrefix(rq.URL.Path, "/v1.") {
			return &http.Response{StatusCode: 400, Status: "400 Bad Request", Body: http.NoBody, Request: rq}, nil
		}
	case hangs:
		wait = time.Hour
		fallthrough
	case slow:
		select {
		case <-rq.Context().Done():
			return nil, rq.Context().Err()
		case <-time.After(wait):
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	path := strings.TrimPrefix(rq.URL.Path, "/v1.41")
	rs := &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{"Api-Version": {"1.41"}}, Request: rq}
	var body io.Reader = strings.NewReader("OK")
	switch {
	case how == broken:
		rs.StatusCode, rs.Status = 500, "500 Internal Server Error"
		body = strings.NewReader(`{"message":"broken"}`)
	case path == "/containers/json":
		text := m.list()
		if how == half {
			text = text[:m.r.IntN(len(text))]
		}
		body = strings.NewReader(text)
	case path == "/events" && how == deaf:
		rs.StatusCode, rs.Status = 403, "403 Forbidden"
		body = strings.NewReader("no")
	case path == "/events":
		r, w := io.Pipe()
		c := make(chan string, 4096)
		if m.streams == nil {
			m.streams = map[*io.PipeWriter]chan string{}
		}
		m.streams[w] = c
		body = r
		context.AfterFunc(rq.Context(), func() { r.CloseWithError(context.Canceled) })
		go func() {
			defer w.Close()
			for {
				select {
				case text, ok := <-c:
					if !ok {
						return
					}
					if _, err := io.WriteString(w, text); err != nil {
						m.forget(w)
						return
					}
				case <-rq.Context().Done():
					m.forget(w)
					return
				}
			}
		}()
	}
	m.open.Add(1)
	rs.Body = &counted{Reader: body, m: m}
	return rs, nil
}

func (m *machine) forget(w *io.PipeWriter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.streams, w)
}

// counted is a body that has to be closed.
type counted struct {
	io.Reader
	m    *machine
	once sync.Once
}

// Close closes it.
func (c *counted) Close() error {
	c.once.Do(func() {
		c.m.open.Add(-1)
		if p, ok := c.Reader.(*io.PipeReader); ok {
			p.CloseWithError(errors.New("closed"))
		}
	})
	return nil
}

// compare looks at what is told when all is quiet.
func (m *machine) compare(t *testing.T, s *Source) {
	t.Helper()
	m.mu.Lock()
	text := m.list()
	m.mu.Unlock()
	l, err := readList(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	out := newWorld("local", &config.Docker{}, here{reaches: true}).update(l, s.engine.reached(), time.Now())
	got := s.Snapshot()
	want := &discovery.Snapshot{State: discovery.Running, Known: true, Objects: out.objects, Issues: out.issues}
	if got.State != discovery.Running || got.Reason != "" || !got.Known || story(got) != story(want) {
		t.Errorf("it is told as %s (%s)\n%s\nand is\n%s", got.State, got.Reason, story(got), story(want))
	}
	w := s.world // nobody uses it between two listings
	n := len(l.containers)
	if len(w.asks) > n || len(w.began) > n || len(w.stopping) > n || len(w.found) > len(out.objects) {
		t.Errorf("%d containers, and %d, %d, %d and %d are remembered", n, len(w.asks), len(w.began), len(w.stopping), len(w.found))
	}
}
