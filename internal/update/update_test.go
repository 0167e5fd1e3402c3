package update

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatIsNewer(t *testing.T) {
	for _, c := range []struct {
		latest, have string
		newer        bool
	}{
		{"1.2.4", "1.2.3", true}, {"1.10.0", "1.9.9", true}, {"1.2.3", "1.2.3", false}, {"1.2.2", "1.2.3", false},
		{"1.2.3", "1.2.3-rc.1", true}, {"1.2.3-rc.1", "1.2.3", false}, {"1.2.3-rc.10", "1.2.3-rc.9", true},
		{"1.2.3", "devel", false}, {"1.2.3", "", false},
	} {
		if got := Newer(c.latest, c.have); got != c.newer {
			t.Errorf("%s newer than %s: got %v", c.latest, c.have, got)
		}
	}
}

// client returns a client of a server that answers with a body.
func client(t *testing.T, status int, body func() string) *Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if rq.URL.Path != "/releases/latest/download/VERSION" || rq.UserAgent() != "headgate/1.0.0" {
			t.Errorf("got %s from %q", rq.URL, rq.UserAgent())
		}
		w.WriteHeader(status)
		w.Write([]byte(body()))
	}))
	t.Cleanup(s.Close)
	c := NewClient(Source(s.URL+"/"), "headgate/1.0.0", nil)
	t.Cleanup(c.Close)
	return c
}

func TestTheLatestReleaseIsRead(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, want string
		err        string
	}{
		{200, "1.2.3\n", "1.2.3", ""},
		{200, "1.2.3-rc.1", "1.2.3-rc.1", ""},
		{200, "1.2", "", "no version such as"},
		{200, "<html>sign in</html>", "", "no version such as"},
		{200, strings.Repeat("1", maxFile+1), "", "larger than"},
		{404, "1.2.3", "", "404"},
	} {
		got, err := client(t, c.status, func() string { return c.body }).Latest(t.Context())
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%d %.20q: got %q, %v, want %q, %q", c.status, c.body, got, err, c.want, c.err)
		}
	}
	if _, err := NewClient(Source(""), "", nil).Latest(t.Context()); err != ErrNoSource {
		t.Errorf("without a home page: %v", err)
	}
}

func TestAWatchTellsWhileItIsOn(t *testing.T) {
	var version atomic.Value
	version.Store("1.0.0")
	asked := make(chan struct{}, 10)
	c := client(t, 200, func() string { asked <- struct{}{}; return version.Load().(string) })
	var log testhouse.Log
	w := NewWatch(c, "1.0.0", slog.New(slog.NewTextHandler(&log, nil)))
	w.first = func() time.Duration { return 0 }
	w.Use(true)
	w.Use(true) // a change of something else
	<-asked
	w.Use(false)
	if w.Newer() != "" || strings.Contains(log.String(), "newer") {
		t.Errorf("the same version is said to be newer:\n%s", log.String())
	}
	version.Store("1.1.0")
	w.Use(true)
	testhouse.Eventually(t, "the newer version is known", func() bool { return w.Newer() == "1.1.0" })
	w.Use(false)
	if w.Newer() != "" {
		t.Error("it tells while it is off")
	}
	w.Close()
}
