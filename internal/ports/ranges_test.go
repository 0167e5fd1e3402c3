package ports

import (
	"reflect"
	"testing"

	"headgate/internal/config"
)

func TestPortsOfARangeAreOneState(t *testing.T) {
	state := func(name, address string, p config.Protocol, word string, n int) State {
		return State{Name: name, Address: address, Protocol: p, State: word, Connections: n, Accepted: uint64(n)}
	}
	got := joinRanges([]State{
		state("web", "0.0.0.0:80", config.HTTP, "listening", 1),
		state("ftp", "0.0.0.0:9", config.TCP, "listening", 1),
		state("ftp", "0.0.0.0:11", config.TCP, "listening", 3),
		state("ftp", "0.0.0.0:10", config.TCP, "listening", 2),
		state("ftp", "0.0.0.0:12", config.TCP, "waiting", 0),
		state("ftp", "0.0.0.0:13", config.TCP, "listening", 5),
		state("ftp", "0.0.0.0:9", config.UDP, "listening", 1),
		state("web", "0.0.0.0:81", config.HTTP, "listening", 1),
	})
	want := []State{
		state("web", "0.0.0.0:80", config.HTTP, "listening", 1),
		state("ftp", "0.0.0.0:12", config.TCP, "waiting", 0),
		state("ftp", "0.0.0.0:9", config.UDP, "listening", 1),
		state("web", "0.0.0.0:81", config.HTTP, "listening", 1),
		state("ftp", "0.0.0.0:9-11", config.TCP, "listening", 6),
		state("ftp", "0.0.0.0:13", config.TCP, "listening", 5),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
}
