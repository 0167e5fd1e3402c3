package control

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"headgate/internal/plan"
	"headgate/internal/store/history"
	"headgate/internal/testhouse"
)

// scene is what a refused change must not touch.
type scene struct {
	plan      *plan.Plan
	record    *recordSet
	revisions []history.Revision
	status    Status
}

func snapshot(h *house) scene {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	s := scene{plan: h.c.Plan(), record: h.c.records.current.Load()}
	s.revisions = h.c.history.List(0, 10)
	s.status = h.c.Status()
	s.status.Refused, s.status.Sources = nil, nil
	for i := range s.status.Ports {
		s.status.Ports[i].Connections, s.status.Ports[i].Accepted = 0, 0
	}
	return s
}

// same holds that everything is as it was.
func (s scene) same(t *testing.T, h *house) {
	t.Helper()
	refused := h.c.Status().Refused
	if refused == nil || len(refused.Problems) == 0 {
		t.Error("the status does not tell of the refusal")
	}
	now := snapshot(h)
	if s.plan != now.plan || s.record != now.record || !reflect.DeepEqual(s.revisions, now.revisions) {
		t.Errorf("a refused change left its mark:\nbefore %+v\nafter  %+v", s, now)
	}
	if !reflect.DeepEqual(s.status, now.status) {
		t.Errorf("status before %+v\nstatus after  %+v", s.status, now.status)
	}
}

func metricsPage(h *house) string {
	w := httptest.NewRecorder()
	h.c.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// lines returns the lines of a text that hold a word.
func lines(text, word string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

// withLog is document with an access log.
func withLog(status int, log string, ports ...string) string {
	return strings.Replace(document(status, ports...), "access_log: {enabled: false}", fmt.Sprintf("access_log: {path: %q}", log), 1)
}

func TestARefusedChangeLeavesEverything(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 5)
	dir := t.TempDir()
	log := filepath.Join(dir, "access.log")
	good := withLog(201, log, "a "+at[0])
	h := start(t, good)
	busy, err := net.Listen("tcp", at[1])
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	before := snapshot(h)
	for name, text := range map[string]string{
		"not YAML":           "version: [1",
		"binary":             "\x7fELF\x02\x01\x00\x00",
		"empty":              "",
		"wrong word":         strings.Replace(good, "protocol", "protocoll", 1),
		"clash of routes":    good + "  other: {routes: [{fixed_response: {status: 200}}]}\n",
		"busy port":          withLog(202, filepath.Join(dir, "other.log"), "a "+at[2], "b "+at[1]),
		"no such log folder": withLog(202, filepath.Join(dir, "absent", "access.log"), "a "+at[2]),
	} {
		if err := h.try(text); err == nil {
			t.Fatalf("%s: it was applied", name)
		}
		before.same(t, h)
		for _, closed := range []string{at[2], at[3]} {
			expectStatus(t, closed, 0)
		}
		expectStatus(t, at[0], 201)
	}
	if page := metricsPage(h); !strings.Contains(page, `headgate_config_applies_total{result="refused"} 7`) ||
		!strings.Contains(page, "headgate_config_last_apply_successful 0") {
		t.Errorf("the page says %s", lines(page, "headgate_config"))
	}
	h.apply(good)
	if r := h.c.Status().Refused; r != nil {
		t.Errorf("the refusal stays: %v", r)
	}
}

func TestAChangeThatCannotBeSavedIsRefused(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := start(t, document(201, "a "+at[0]))
	before := snapshot(h)
	// Whoever is root may write everywhere, but not where there is no folder.
	staged := filepath.Join(h.c.files.Dir(), "staged")
	if err := os.Rename(staged, staged+".away"); err != nil {
		t.Fatal(err)
	}
	if err := h.try(document(202, "a "+at[1])); err == nil {
		t.Fatal("it was applied")
	}
	if err := os.Rename(staged+".away", staged); err != nil {
		t.Fatal(err)
	}
	before.same(t, h)
	expectStatus(t, at[1], 0)
	expectStatus(t, at[0], 201)
	h.apply(document(203, "a "+at[1]))
	expectStatus(t, at[1], 203)
}

func TestAChangeThatComesWhileStoppingIsRefused(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := start(t, document(201, "a "+at[0]))
	h.finish()
	if err := h.try(document(202, "a "+at[1])); err == nil || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("got %v, want that it is stopping", err)
	}
	if err := h.c.Reload(); err == nil {
		t.Error("the file was applied")
	}
	expectStatus(t, at[1], 0)
	h.c.close() // a second time
}

func TestStatusAndMetricsNeverWaitForAChange(t *testing.T) {
	at := testhouse.Addresses(t, 3)
	h := start(t, document(201, "a "+at[0]))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for _, look := range []func(){func() { h.c.Status() }, func() { metricsPage(h) }, func() { h.c.NotReady() }} {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					look()
					testhouse.Pause()
				}
			}
		})
	}
	for i := range 20 {
		h.apply(document(201+i, "a "+at[i%2]))
	}
	h.apply(document(201, "a "+at[0]))
	testhouse.Eventually(t, "the other port has drained", func() bool { return len(h.c.Status().Ports) == 1 })
	close(done)
	readers.Wait()
	// A change under way holds nobody up.
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if s := h.c.Status(); s.State != "serving" || len(s.Ports) != 1 {
		t.Errorf("got %+v", s)
	}
	metricsPage(h)
}

func TestTheStatusPage(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 4)
	busy, err := net.Listen("tcp", at[2])
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	h := start(t, document(201, "a "+at[0], "off "+at[3]+" active: false", "busy "+at[2]))
	h.try("version: 2\n")
	text, err := json.Marshal(h.c.Status())
	if err != nil {
		t.Fatal(err)
	}
	var page map[string]any
	if err := json.Unmarshal(text, &page); err != nil {
		t.Fatal(err)
	}
	if page["state"] != "serving" || page["revision"] != "00000001" || page["since"] == nil {
		t.Errorf("got %v", page)
	}
	refused := page["refused"].(map[string]any)
	if text := fmt.Sprint(refused["problems"]); !strings.Contains(text, "test.yaml:1:") || refused["since"] == nil {
		t.Errorf("refused: %v", refused)
	}
	var states []string
	for _, p := range page["ports"].([]any) {
		port := p.(map[string]any)
		states = append(states, fmt.Sprint(port["name"], " ", port["address"], " ", port["protocol"], " ", port["state"], " ", port["reason"]))
		for _, key := range []string{"since", "connections", "accepted"} {
			if port[key] == nil {
				t.Errorf("port %v has no %s", port["name"], key)
			}
		}
	}
	wanted := []string{
		"a " + at[0] + " http listening <nil>",
		"busy " + at[2] + " http waiting address_in_use",
		"off " + at[3] + " http inactive <nil>",
	}
	if !slices.Equal(states, wanted) {
		t.Errorf("got %q, want %q", states, wanted)
	}
}

func TestTheStatusBeforeTheStart(t *testing.T) {
	h := prepare(t, "version: 1\n")
	defer h.c.close()
	got, err := json.Marshal(h.c.Status())
	if want := fmt.Sprintf(`{"state":"starting","revision":"","process":{"version":"","pid":%d,"generation":1,"in_progress":false},"ports":[],"proxies":[],"sources":[]}`, os.Getpid()); err != nil || string(got) != want {
		t.Errorf("got %s and %v, want %s", got, err, want)
	}
}
