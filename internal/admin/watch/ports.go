package watch

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"headgate/internal/event"
	"headgate/internal/ports"
)

// portKey identifies a port; while a port moves, it has two entries.
type portKey struct{ name, address, protocol string }

// checkPorts compares the state of the ports with what was reported last.
func (w *Watch) checkPorts(all []ports.State) {
	now := make(map[portKey]ports.State, len(all))
	for _, s := range all {
		if s.State != "draining" {
			now[portKey{s.Name, s.Address, string(s.Protocol)}] = s
		}
	}
	for _, k := range sorted(w.ports) {
		if _, still := now[k]; !still && w.ports[k].State == "listening" {
			w.events.Send(event.PortClosed{Port: event.Port{Port: k.name, Address: k.address}})
		}
	}
	for _, k := range sorted(now) {
		is, was := now[k], w.ports[k]
		switch {
		case is.State != was.State && is.State == "listening":
			w.events.Send(event.PortListening{Port: about(is)})
		case is.State != was.State || is.Reason != was.Reason:
			w.events.Send(event.PortWaiting{Port: about(is)})
		}
		if is.AtLimit && !was.AtLimit {
			w.events.Send(event.LimitReached{
				Limit: "max_connections", Object: "port " + is.Name, Value: strconv.Itoa(is.Connections), Effect: "idle connections are closed for new ones, or these wait",
			})
		}
	}
	w.ports = now
}

// about returns the event data for a port, with the reason for its state.
func about(p ports.State) event.Port {
	return event.Port{Port: p.Name, Address: p.Address, Reason: p.Reason, Hint: p.Hint}
}

func sorted(all map[portKey]ports.State) []portKey {
	return slices.SortedFunc(maps.Keys(all), func(a, b portKey) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.address, b.address), cmp.Compare(a.protocol, b.protocol))
	})
}
