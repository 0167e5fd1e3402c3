package plan

import (
	"testing"

	"headgate/internal/config"
)

func portOf(protocol config.Protocol, auth config.ClientAuth, clients string) *Port {
	p := &Port{settings: &config.Port{Protocol: protocol}}
	p.settings.TLS.ClientAuth = auth
	if protocol == config.HTTPS {
		p.tls = &portTLS{clients: clients}
	}
	return p
}

// TestContinues holds which changes end open connections: another protocol, and
// more or other demands on clients.
func TestContinues(t *testing.T) {
	http := portOf(config.HTTP, config.ClientAuthOff, "")
	off := portOf(config.HTTPS, config.ClientAuthOff, "off")
	optional := portOf(config.HTTPS, config.ClientAuthOptional, "optional a")
	required := portOf(config.HTTPS, config.ClientAuthRequired, "required a")
	other := portOf(config.HTTPS, config.ClientAuthRequired, "required b")
	for _, c := range []struct {
		what    string
		is, was *Port
		want    bool
	}{
		{"http to http", http, http, true},
		{"http to https", off, http, false},
		{"https to http", http, off, false},
		{"off to off", off, off, true},
		{"off to optional", optional, off, false},
		{"off to required", required, off, false},
		{"required to required", required, required, true},
		{"required to other authorities", other, required, false},
		{"required to off", off, required, true},
	} {
		if got := c.is.Continues(c.was); got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
}
