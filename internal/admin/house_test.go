package admin

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/control"
	"headgate/internal/ports/listen"
	"headgate/internal/testhouse"
)

// patience is how long a test waits for what has to happen.
const patience = time.Minute

// house is a control that runs, with the listener above it.
type house struct {
	t     *testing.T
	c     *control.Control
	admin *Server
	log   *lines
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// open starts a house with a configuration.
func open(t *testing.T, text string) *house {
	t.Helper()
	dir := t.TempDir()
	h := &house{t: t, log: &lines{}}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	file := filepath.Join(dir, "headgate.yaml")
	write(t, file, text)
	ready := make(chan struct{})
	var err error
	h.c, err = control.New(control.Options{Log: log, ConfigFile: file, StateDir: filepath.Join(dir, "state"), Ready: func() { close(ready) }})
	if err != nil {
		t.Fatal(err)
	}
	h.admin = New(Options{
		Log: log, Metrics: h.c.Metrics(), NotReady: h.c.NotReady, Listen: listen.Listener,
		Status:     func(string) any { return h.c.Status() },
		FirstRetry: time.Millisecond, LastRetry: 10 * time.Millisecond,
	})
	h.c.Join(h.admin)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.c.Run(ctx) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("it did not start: %v", err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		h.admin.Close()
	})
	return h
}

// doc is a configuration of one document.
func doc(text string) config.Documents {
	return config.Documents{List: []config.Document{{Name: "test.yaml", Data: []byte(text)}}}
}

func (h *house) try(text string) error {
	return h.c.Apply(control.Cause{Via: control.ViaAPI}, doc(text))
}

func (h *house) apply(text string) {
	h.t.Helper()
	if err := h.try(text); err != nil {
		h.t.Fatal(err)
	}
}

// document writes a configuration with an admin listener and ports as "name address",
// with the status that every request gets.
func document(status int, admin string, ports ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nadmin: {address: %q}\naccess_log: {enabled: false}\nports:\n", admin)
	for _, p := range ports {
		name, address, _ := strings.Cut(p, " ")
		address, more, _ := strings.Cut(address, " ")
		fmt.Fprintf(&b, "  %s: {address: %q, protocol: http%s}\n", name, address, more)
	}
	fmt.Fprintf(&b, "proxies:\n  all: {routes: [{fixed_response: {status: %d}}]}\n", status)
	return b.String()
}

// get returns the status and body of a page, 0 if there is none.
func get(address, path string) (int, string) { return getURL("http://" + address + path) }

func getURL(url string) (int, string) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	rs, err := client.Get(url)
	if err != nil {
		return 0, ""
	}
	defer rs.Body.Close()
	body, _ := io.ReadAll(rs.Body)
	return rs.StatusCode, string(body)
}

func TestABusyAddressKeepsNobodyFromBeingServed(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	busy, err := net.Listen("tcp", at[1])
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, document(201, at[1], "a "+at[0]))
	if got, _ := get(at[0], "/"); got != 201 {
		t.Errorf("got %d, want 201", got)
	}
	h.apply(document(202, at[1], "a "+at[0])) // other changes are not held up
	if got, _ := get(at[0], "/"); got != 202 {
		t.Errorf("got %d, want 202", got)
	}
	if n := h.log.count("cannot bind admin listener"); n != 1 {
		t.Errorf("it was said %d times that the admin listener waits, want once", n)
	}
	busy.Close()
	for end := time.Now().Add(patience); h.admin.Address().String() != at[1]; {
		if time.Now().After(end) {
			t.Fatal("the admin listener was never opened")
		}
		<-time.After(2 * time.Millisecond)
	}
	if got, _ := get(at[1], "/readyz"); got != 200 {
		t.Errorf("got %d, want 200", got)
	}
}

// A change that cannot be made leaves the listener where it is; one of which another
// part cannot be made closes what it has opened.
func TestARefusedChangeLeavesTheListener(t *testing.T) {
	at := testhouse.Addresses(t, 4)
	h := open(t, document(201, at[1], "a "+at[0]))
	busy, err := net.Listen("tcp", at[2])
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, text := range map[string]string{
		"busy admin": document(202, at[2], "a "+at[3]),
		"busy port":  document(202, at[3], "a "+at[0], "b "+at[2]),
	} {
		if err := h.try(text); err == nil || !strings.Contains(err.Error(), at[2]) {
			t.Errorf("%s: got %v, want that %s is in use", name, err, at[2])
		}
		if got, _ := get(at[1], "/readyz"); got != 200 {
			t.Errorf("%s: the listener is gone", name)
		}
		if got, _ := get(at[0], "/"); got != 201 {
			t.Errorf("%s: got %d, want 201", name, got)
		}
		if c, err := net.Dial("tcp", at[3]); err == nil {
			c.Close()
			t.Errorf("%s: %s was left open", name, at[3])
		}
	}
}

func TestADryRunOpensNothing(t *testing.T) {
	at := testhouse.Addresses(t, 3)
	h := open(t, document(201, at[1], "a "+at[0]))
	d := doc(document(202, at[2], "a "+at[0]))
	if _, err := h.c.DryRun(control.Cause{}, d); err != nil {
		t.Fatal(err)
	}
	if got := h.admin.Address(); got != netip.MustParseAddrPort(at[1]) {
		t.Errorf("the listener is at %s, want %s", got, at[1])
	}
	if c, err := net.Dial("tcp", at[2]); err == nil {
		c.Close()
		t.Errorf("%s was left open", at[2])
	}
}

func TestTheListenerMovesToAllInterfacesAndBack(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	narrow, port := at[1], at[1][strings.LastIndexByte(at[1], ':'):]
	h := open(t, document(201, narrow, "a "+at[0]))
	for _, address := range []string{"0.0.0.0" + port, narrow, "[::]" + port, "0.0.0.0" + port, narrow} {
		h.apply(document(201, address, "a "+at[0]))
		scheme := "https://"
		if address == narrow {
			scheme = "http://"
		}
		if got, _ := getURL(scheme + narrow + "/readyz"); got != 200 {
			t.Errorf("%s: got %d, want 200", address, got)
		}
	}
}
