package watch

import (
	"time"

	"headgate/internal/control"
	"headgate/internal/event"
)

// drains returns the channel of a ticker while servers drain, else nil.
func drains(draining map[control.HeldServer]bool, t *time.Ticker) <-chan time.Time {
	if len(draining) == 0 {
		return nil
	}
	return t.C
}

// bare returns a server without what changes while it is held.
func bare(s control.HeldServer) control.HeldServer {
	return control.HeldServer{Kind: s.Kind, Proxy: s.Proxy, Server: s.Server}
}

// reportHeld sends the events for servers that operators drained, disabled or enabled.
func (w *Watch) reportHeld(all []control.HeldServer) {
	for _, s := range all {
		w.events.Send(event.ServerDrained{Server: aboutHeld(s), State: s.Hold, Who: s.Who, Until: s.Until})
		delete(w.draining, bare(s))
		if s.Hold != control.Enabled {
			w.draining[bare(s)] = true
		}
	}
	if len(all) > 0 {
		w.checkDraining()
	}
}

func aboutHeld(s control.HeldServer) event.Server {
	return event.Server{Kind: s.Kind, Proxy: s.Proxy, Server: s.Server, Reason: "operator", Cause: s.Why}
}

// checkDraining sends events for draining servers that have become idle.
func (w *Watch) checkDraining() {
	still := map[control.HeldServer]bool{}
	for _, s := range w.house.HeldServers() {
		if !w.draining[bare(s)] {
			continue
		}
		if s.Active > 0 {
			still[bare(s)] = true
			continue
		}
		w.events.Send(event.ServerDrained{Server: aboutHeld(s), State: "drained", Who: s.Who, Until: s.Until})
	}
	w.draining = still
}
