package cutover

import (
	"net/netip"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/ports"
	"headgate/internal/store/history"
)

func at(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

// TestLast reads the state of the last cutover from the history.
func TestLast(t *testing.T) {
	moved := &history.Cutover{Moves: []history.Move{{Port: "web", From: at("127.0.0.1:8080"), To: at("127.0.0.1:80")}}}
	back := &history.Cutover{Returns: 2}
	for _, c := range []struct {
		name   string
		newest []history.Revision
		number int
		want   State
	}{
		{"none", []history.Revision{{Number: 1}}, 0, ""},
		{"pending", []history.Revision{{Number: 2, Cutover: moved, State: history.Applied}, {Number: 1}}, 2, Pending},
		{"confirmed, with changes since", []history.Revision{{Number: 3}, {Number: 2, Cutover: moved, State: history.Confirmed}}, 2, Confirmed},
		{"reverted", []history.Revision{{Number: 3}, {Number: 2, Cutover: moved, State: history.RolledBack}}, 2, Reverted},
		{"returned", []history.Revision{{Number: 3, Cutover: back, State: history.Confirmed}, {Number: 2, Cutover: moved, State: history.Confirmed}}, 2, Returned},
		{"the return was not confirmed", []history.Revision{{Number: 3, Cutover: back, State: history.RolledBack}, {Number: 2, Cutover: moved, State: history.Confirmed}}, 2, Confirmed},
		{"returned, and moved again", []history.Revision{{Number: 4, Cutover: moved, State: history.Confirmed}, {Number: 3, Cutover: back, State: history.Confirmed}, {Number: 2, Cutover: moved, State: history.Confirmed}}, 4, Confirmed},
	} {
		r, state := Last(c.newest)
		number := 0
		if r != nil {
			number = r.Number
		}
		if number != c.number || state != c.want {
			t.Errorf("%s: revision %d is %q, want %d and %q", c.name, number, state, c.number, c.want)
		}
	}
}

func TestMoves(t *testing.T) {
	cfg := config.New()
	cfg.Ports = map[string]*config.Port{}
	for name, address := range map[string]string{"web": "127.0.0.1:8080", "tls": "[::]:8443"} {
		p := &config.Port{}
		p.Name = name
		p.Address = at(address)
		cfg.Ports[name] = p
	}
	moves, err := Moves(cfg, []Request{{"web", "80"}, {"tls", "[::1]:443"}})
	if err != nil || len(moves) != 2 || moves[0].To != at("127.0.0.1:80") || moves[1].To != at("[::1]:443") {
		t.Fatalf("got %v, %v", moves, err)
	}
	if none, err := Moves(cfg, []Request{{"web", "8080"}}); err != nil || len(none) != 0 {
		t.Errorf("a port that is there already: %v, %v", none, err)
	}
	for _, c := range []struct {
		in   []Request
		want string
	}{
		{[]Request{{"x", "80"}}, "no port x"},
		{[]Request{{"web", "0"}}, "port number"},
		{[]Request{{"web", "65536"}}, "port number"},
		{[]Request{{"web", "127.0.0.1:0"}}, "port number"},
		{[]Request{{"web", "example.com:80"}}, "port number"},
		{[]Request{{"web", "80"}, {"web", "81"}}, "twice"},
	} {
		if _, err := Moves(cfg, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.in, err, c.want)
		}
	}

	// The way back leaves out a port that was changed since.
	cfg.Ports["web"].Address = at("127.0.0.1:80")
	back := Reversed(cfg, moves)
	if len(back) != 1 || back[0].Port != "web" || back[0].To != at("127.0.0.1:8080") {
		t.Errorf("back: %v", back)
	}
	held := Held([]ports.State{{Name: "web", Address: "127.0.0.1:80", Holds: true}, {Name: "tls", Address: "[::1]:443"}}, moves)
	if len(held) != 1 || held[0] != "web 127.0.0.1:80" {
		t.Errorf("held: %v", held)
	}
}

// TestLimits judges what a watch has counted.
func TestLimits(t *testing.T) {
	limits := WatchLimits{MaxErrors: 5, MinHealthy: 50}
	for _, c := range []struct {
		now  Watching
		want string
	}{
		{Watching{Responses: 19, ServerErrors: 19}, ""},
		{Watching{Responses: 20, ServerErrors: 1}, ""},
		{Watching{Responses: 20, ServerErrors: 2}, "2 of 20 responses since the cutover are 5xx, more than 5%"},
		{Watching{HealthyBefore: 4, Healthy: 2}, ""},
		{Watching{HealthyBefore: 4, Healthy: 1}, "1 of the 4 servers that were healthy remain healthy, less than 50%"},
		{Watching{HealthyBefore: 0, Healthy: 0}, ""},
	} {
		c.now.WatchLimits = limits
		if got := c.now.exceeded(); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.now, got, c.want)
		}
	}
}
