package accesslog

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"headgate/internal/exchange"
)

func TestALineForAPassage(t *testing.T) {
	p := &exchange.Session{
		Protocol: "tcp", Proxy: "db", Name: "db.example.com", Server: "127.0.0.1:5433", Attempts: 2,
		Client: netip.MustParseAddrPort("203.0.113.9:4000"), Peer: netip.MustParseAddrPort("198.51.100.7:1"),
		Reason: exchange.UpstreamReset, Cause: "server: reset", Start: 1, Connected: 250_001, End: 2_000_001, Sent: 100, Received: 7,
	}
	l, path := open(t, JSON)
	l.RecordSession(p)
	l.Close()
	var got map[string]any
	if err := json.Unmarshal([]byte(read(t, path)), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"proto": "tcp", "proxy": "db", "server_name": "db.example.com", "server": "127.0.0.1:5433", "attempts": 2.0,
		"client_ip": "203.0.113.9", "client_port": 4000.0, "peer": "198.51.100.7", "reason": "upstream_reset", "cause": "server: reset",
		"bytes_sent": 100.0, "bytes_received": 7.0, "duration_ms": 2.0, "connect_ms": 0.25,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	l, path = open(t, Combined)
	l.RecordSession(p)
	l.Close()
	line := read(t, path)
	if !strings.HasPrefix(line, "203.0.113.9 - - [") || !strings.HasSuffix(line, `] "TCP db" 502 100 "-" "-"`+"\n") {
		t.Errorf("combined: got %q", line)
	}
}
