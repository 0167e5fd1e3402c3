package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
)

var far = netip.MustParseAddr("198.51.100.7")

func shop(server string) *Report {
	return &Report{Objects: []Object{{
		Kind: "proxies", Name: "shop", Container: "shop-1", Created: time.Unix(1, 0),
		Labels:  []Label{{Path: "virtual_hosts", Value: "shop.example", Container: "shop-1", Name: "headgate.host"}},
		Servers: []Server{{Address: server, Container: "shop-1"}},
	}}}
}

func open(t *testing.T, state string, settings *config.Agent) *Source {
	t.Helper()
	s, err := Open("web7", settings, discovery.Environment{State: state})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*Source)
}

func TestServersAreOnTheMachineOfTheAgent(t *testing.T) {
	fixed := netip.MustParseAddr("10.0.0.7")
	for _, c := range []struct {
		settings config.Agent
		from     string
		server   string
		want     string // "" is none
	}{
		{config.Agent{}, "198.51.100.7", "http://192.0.2.1:8080/app", "http://198.51.100.7:8080/app"},
		{config.Agent{}, "::ffff:198.51.100.7", "http://192.0.2.1:8080", "http://198.51.100.7:8080"},
		{config.Agent{}, "2001:db8::7", "https://192.0.2.1:8443", "https://[2001:db8::7]:8443"},
		{config.Agent{}, "198.51.100.7", "http://10.0.0.1:22", "http://198.51.100.7:22"},
		{config.Agent{}, "198.51.100.7", "http://169.254.169.254:80", "http://198.51.100.7:80"},
		{config.Agent{}, "198.51.100.7", "http://127.0.0.1:9080@10.0.0.1:80", ""},
		{config.Agent{}, "198.51.100.7", "http://name.example:80", ""},
		{config.Agent{}, "198.51.100.7", "unix:/run/docker.sock", ""},
		{config.Agent{}, "198.51.100.7", "fcgi://192.0.2.1:9000", ""},
		{config.Agent{}, "198.51.100.7", "http://192.0.2.1:0", ""},
		{config.Agent{Address: fixed}, "127.0.0.1", "http://192.0.2.1:8080", "http://10.0.0.7:8080"},
	} {
		s := open(t, "", &c.settings)
		if _, err := s.Receive(netip.MustParseAddr(c.from), shop(c.server)); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		got := ""
		d := s.Snapshot().Objects[0]
		for _, server := range d.Servers {
			got = server.Address
		}
		if got != c.want || d.Origin.String() != "container shop-1@web7" || d.Origin.Via != config.ViaAgent {
			t.Errorf("%s from %s: got %q of %v, want %q", c.server, c.from, got, d.Origin, c.want)
		}
	}
	for _, from := range []string{"127.0.0.1", "::1", "169.254.1.1", "fe80::1"} {
		if _, err := open(t, "", &config.Agent{}).Receive(netip.MustParseAddr(from), shop("http://192.0.2.1:80")); err == nil {
			t.Errorf("a report from %s is accepted", from)
		}
	}
}

func TestHostileReportsAreRefused(t *testing.T) {
	many := &Report{}
	for i := range maxObjects + 1 {
		many.Objects = append(many.Objects, Object{Kind: "proxies", Name: fmt.Sprint(i)})
	}
	servers := shop("http://192.0.2.1:80")
	for range maxServers {
		servers.Objects[0].Servers = append(servers.Objects[0].Servers, Server{Address: "http://192.0.2.1:80"})
	}
	for name, r := range map[string]*Report{
		"too many objects": many,
		"too many servers": servers,
		"a port":           {Objects: []Object{{Kind: "ports", Name: "web"}}},
		"an issue":         {Issues: []Issue{{Kind: "ports"}}},
	} {
		s := open(t, "", &config.Agent{})
		if _, err := s.Receive(far, r); err == nil || s.Snapshot().Known {
			t.Errorf("%s: accepted", name)
		}
	}
	s := open(t, "", &config.Agent{})
	if _, err := s.Receive(far, shop("http://192.0.2.1:80")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(far, shop("http://192.0.2.1:81")); !errors.Is(err, ErrTooSoon) {
		t.Errorf("a second report at once: %v", err)
	}
	evil := shop("http://192.0.2.1:80")
	evil.Objects[0].Container = "x@other\x1b[31m"
	evil.Issues = []Issue{{Container: "a\nb", Message: strings.Repeat("x", 10_000), Kind: "proxies", Name: "n"}}
	s = open(t, "", &config.Agent{})
	if _, err := s.Receive(far, evil); err != nil {
		t.Fatal(err)
	}
	if o := s.Snapshot().Objects[0].Origin.Container; strings.Count(o, "@") != 1 || !strings.HasSuffix(o, "@web7") || strings.Contains(o, "\x1b") {
		t.Errorf("container %q", o)
	}
	if i := s.Snapshot().Issues[0]; len(i.Message) > 510 || strings.Contains(i.Container, "\n") {
		t.Errorf("issue %+v", i)
	}
}

func TestAnAgentThatIsSilentIsStaleAndThenGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		s := open(t, state, &config.Agent{})
		s.Start()
		defer s.Stop()
		if again, err := s.Receive(far, shop("http://192.0.2.1:80")); err != nil || !again {
			t.Fatal(again, err)
		}
		first := s.Snapshot()
		for range 20 {
			time.Sleep(10 * time.Second)
			if again, err := s.Receive(far, shop("http://192.0.2.1:80")); err != nil || again {
				t.Fatal(again, err)
			}
		}
		if s.Snapshot() != first {
			t.Error("the same reports are changes")
		}
		time.Sleep(staleAfter + 2*time.Second)
		if now := s.Snapshot(); now.State != discovery.Stale || len(now.Objects) != 1 || now.Objects[0] != first.Objects[0] {
			t.Errorf("after %v: %+v", staleAfter, now)
		}
		time.Sleep(goneAfter - staleAfter)
		if now := s.Snapshot(); now.State != discovery.Failed || len(now.Objects) != 0 || !now.Known {
			t.Errorf("after %v: %+v", goneAfter, now)
		}
		if files, _ := filepath.Glob(filepath.Join(state, "*")); len(files) > 0 {
			t.Errorf("%v is kept", files)
		}
		if again, err := s.Receive(far, shop("http://192.0.2.1:80")); err != nil || !again || s.Snapshot().State != discovery.Running || len(s.Snapshot().Objects) != 1 {
			t.Errorf("it comes back: %v, %v, %+v", again, err, s.Snapshot())
		}
	})
}

func TestTheLastReportIsKeptOverARestart(t *testing.T) {
	state := t.TempDir()
	if _, err := open(t, state, &config.Agent{}).Receive(far, shop("http://192.0.2.1:80")); err != nil {
		t.Fatal(err)
	}
	s := open(t, state, &config.Agent{})
	if now := s.Snapshot(); now.State != discovery.Stale || !now.Known || len(now.Objects) != 1 || now.Objects[0].Servers[0].Address != "http://198.51.100.7:80" {
		t.Fatalf("after a restart: %+v", now)
	}
	if _, err := s.Receive(far, shop("http://192.0.2.1:80")); err != nil || s.Snapshot().State != discovery.Running {
		t.Errorf("%v, %+v", err, s.Snapshot())
	}
	if err := os.WriteFile(s.keptFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := open(t, state, &config.Agent{}); s.Snapshot().Known {
		t.Error("a broken file is used")
	}
	s.Forget()
	if s := open(t, state, &config.Agent{}); s.Snapshot().Known {
		t.Error("it is still there")
	}
}

func TestAnEngineThatIsAwayKeepsTheObjects(t *testing.T) {
	r := shop("http://192.0.2.1:80")
	r.Failure, r.Hint = "no socket", "start it"
	s := open(t, "", &config.Agent{})
	if _, err := s.Receive(far, r); err != nil {
		t.Fatal(err)
	}
	if now := s.Snapshot(); now.State != discovery.Failed || now.Reason != "no socket" || len(now.Objects) != 1 {
		t.Errorf("%+v", now)
	}
}
