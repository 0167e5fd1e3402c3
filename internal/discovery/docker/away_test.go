package docker

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
)

// script answers calls within a test whose time is not that of the world.
type script struct {
	mu                 sync.Mutex
	list, events, ping func() (*http.Response, error)
	asked              map[string][]time.Time
	// refused answers calls that have a version, instead.
	refused map[string]func() (*http.Response, error)
}

// RoundTrip answers a call.
func (s *script) RoundTrip(rq *http.Request) (*http.Response, error) {
	s.mu.Lock()
	path, versioned := strings.CutPrefix(rq.URL.Path, "/v1.41")
	if refuse := s.refused[path]; versioned && refuse != nil {
		s.mu.Unlock()
		rs, err := refuse()
		rs.Request = rq
		return rs, err
	}
	defer s.mu.Unlock()
	s.asked[path] = append(s.asked[path], time.Now())
	rs, err := map[string]func() (*http.Response, error){"/_ping": s.ping, "/containers/json": s.list, "/events": s.events}[path]()
	if rs != nil {
		rs.Request = rq
		if p, ok := rs.Body.(*io.PipeReader); ok {
			context.AfterFunc(rq.Context(), func() { p.CloseWithError(context.Canceled) })
		}
	}
	return rs, err
}

// times returns when a call was made.
func (s *script) times(path string) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked[path])
}

func answer(body io.Reader) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		return &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{"Api-Version": {"1.41"}}, Body: io.NopCloser(body)}, nil
	}
}

// scripted starts a source over a script.
func scripted(t *testing.T) (*Source, *script) {
	s, err := open("local", &config.Docker{Endpoint: "unix:///run/none.sock"}, discovery.Environment{}, here{reaches: true})
	if err != nil {
		t.Fatal(err)
	}
	sc := &script{asked: map[string][]time.Time{}}
	sc.up(`[{"Id":"a","Names":["/app"],"State":"running","Status":"Up 1 second (health: starting)","Labels":{"headgate.host":"a.example"},"Ports":[{"PrivatePort":80,"Type":"tcp"}],"NetworkSettings":{"Networks":{"web":{"IPAddress":"172.18.0.2"}}}}]`)
	s.engine.client.Transport = sc
	return s, sc
}

// up has the engine answer with a list, and tell no events.
func (sc *script) up(list string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.ping = func() (*http.Response, error) { return answer(strings.NewReader("OK"))() }
	sc.list = func() (*http.Response, error) { return answer(strings.NewReader(list))() }
	sc.events = func() (*http.Response, error) {
		r, _ := io.Pipe()
		rs, err := answer(nil)()
		rs.Body = r
		return rs, err
	}
}

// down has the engine answer nothing.
func (sc *script) down() {
	refuse := func() (*http.Response, error) { return nil, syscall.ECONNREFUSED }
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.ping, sc.list, sc.events = refuse, refuse, refuse
}

// TestEngineIsAwayForHours holds that the source goes on asking, at most 30 seconds
// apart, keeps what it knew, and is back when the engine is.
func TestEngineIsAwayForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sc := scripted(t)
		s.Start()
		time.Sleep(time.Second)
		if got := s.Snapshot(); got.State != discovery.Running || len(got.Objects) != 1 {
			t.Fatalf("at first: %+v", got)
		}
		sc.down()
		time.Sleep(5 * time.Hour)
		got := s.Snapshot()
		if got.State != discovery.Failed || len(got.Objects) != 1 || !got.Known {
			t.Errorf("after five hours: %+v", got)
		}
		pings := sc.times("/_ping")
		for i := 1; i < len(pings); i++ {
			if gap := pings[i].Sub(pings[i-1]); i > 1 && gap > 30*time.Second {
				t.Errorf("%v between two attempts", gap)
			}
		}
		if n := len(pings); n < 600 || n > 1000 {
			t.Errorf("%d attempts in five hours", n)
		}
		sc.up(`[]`)
		time.Sleep(31 * time.Second)
		if got := s.Snapshot(); got.State != discovery.Running || len(got.Objects) != 0 {
			t.Errorf("when the engine is back: %+v", got)
		}
		s.Stop()
	})
}

// TestTimes holds what happens by itself: a container that never becomes ready is used
// after a minute, and everything is listed each minute.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sc := scripted(t)
		sc.up(strings.ReplaceAll(`[{"Id":"a","Names":["/app"],"State":"running","Status":"Up 1 second (health: starting)","Labels":{"headgate.host":"a.example"},"Ports":[{"PrivatePort":80,"Type":"tcp"}],"NetworkSettings":{"Networks":{"web":{"IPAddress":"172.18.0.2"}}}}]`, "Up 1 second ", ""))
		s.Start()
		time.Sleep(58 * time.Second)
		if got := story(s.Snapshot()); got != "not_ready app\nproxies app: virtual_hosts=a.example -> " {
			t.Errorf("before a minute:\n%s", got)
		}
		time.Sleep(3 * time.Second)
		if got := story(s.Snapshot()); got != "not_ready app\nproxies app: virtual_hosts=a.example -> http://172.18.0.2:80" {
			t.Errorf("after a minute:\n%s", got)
		}
		before := len(sc.times("/containers/json"))
		time.Sleep(time.Hour)
		if n := len(sc.times("/containers/json")) - before; n < 59 || n > 61 {
			t.Errorf("%d listings in an hour without events", n)
		}
		s.Stop()
	})
}

// TestARestartWhoseEventsAreLost holds that a container that was told to end, and was
// started again while nobody could hear it, is no more taken to be ending.
func TestARestartWhoseEventsAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sc := scripted(t)
		replica := func(name, up string) string {
			return `{"Id":"` + name + `","Names":["/` + name + `"],"State":"running","Status":"` + up + `","Labels":{"headgate.host":"a.example","com.docker.compose.project":"p","com.docker.compose.service":"app"},"Ports":[{"PrivatePort":80,"Type":"tcp"}],"NetworkSettings":{"Networks":{"web":{"IPAddress":"172.18.0.` + name + `"}}}}`
		}
		both, one := "proxies p-app: virtual_hosts=a.example -> http://172.18.0.2:80, http://172.18.0.3:80", "proxies p-app: virtual_hosts=a.example -> http://172.18.0.3:80"
		hold := func(at, want string) {
			t.Helper()
			if got := story(s.Snapshot()); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", at, got, want)
			}
		}
		sc.up("[" + replica("2", "Up 2 hours") + "," + replica("3", "Up 2 hours") + "]")
		r, w := io.Pipe()
		sc.mu.Lock()
		sc.events = func() (*http.Response, error) {
			rs, err := answer(nil)()
			rs.Body = r
			return rs, err
		}
		sc.mu.Unlock()
		s.Start()
		time.Sleep(time.Second)
		hold("at first", both)
		io.WriteString(w, `{"Type":"container","Action":"kill","Actor":{"ID":"2","Attributes":{"signal":"15"}}}`)
		time.Sleep(time.Second)
		hold("told to end", one)
		sc.up("[" + replica("2", "Up About a minute") + "," + replica("3", "Up 2 hours") + "]")
		w.Close()
		time.Sleep(2 * time.Second)
		hold("it may run since before", one)
		time.Sleep(2 * time.Minute)
		hold("it runs since after", both)
		sc.down()
		s.Stop()
	})
}

// TestAVersionThatIsRefusedLate holds that an engine may refuse the version of the calls
// at a time when others are made.
func TestAVersionThatIsRefusedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sc := scripted(t)
		sc.mu.Lock()
		refused := func() (*http.Response, error) {
			return &http.Response{StatusCode: 400, Status: "400 Bad Request", Body: io.NopCloser(strings.NewReader("too old"))}, nil
		}
		sc.refused = map[string]func() (*http.Response, error){
			"/events":          func() (*http.Response, error) { time.Sleep(2 * openTimeout); return refused() },
			"/containers/json": func() (*http.Response, error) { time.Sleep(2 * openTimeout); return refused() },
		}
		sc.mu.Unlock()
		s.Start()
		time.Sleep(10 * time.Second)
		if got := s.Snapshot(); got.State != discovery.Running || len(got.Objects) != 1 {
			t.Errorf("got %+v", got)
		}
		s.Stop()
	})
}
