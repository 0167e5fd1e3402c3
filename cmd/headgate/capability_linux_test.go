package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestCapabilitiesAreRead(t *testing.T) {
	const status = "Name:\theadgate\nCapPrm:\t0000000000000400\nCapEff:\t0000000000000400\nCapAmb:\t0000000000000000\n"
	if got := capabilities(status, "CapEff"); got != 1<<unix.CAP_NET_BIND_SERVICE {
		t.Errorf("CapEff: %x", got)
	}
	if got := capabilities(status, "CapAmb") | capabilities(status, "CapBnd"); got != 0 {
		t.Errorf("CapAmb and a set that is not there: %x", got)
	}
	for text, want := range map[string]uint32{ // as getcap shows it, and the attribute
		"\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00": 1 << unix.CAP_NET_BIND_SERVICE, // =ep
		"\x00\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00": 0,                              // =p
		"": 0, "\x01\x00": 0,
	} {
		if got := fileCapabilities([]byte(text)); got != want {
			t.Errorf("%x: got %x, want %x", text, got, want)
		}
	}
}
