package control

import (
	"encoding/json"
	"time"

	"headgate/internal/config"
)

// maxLines bounds the lines that tell of one change.
const maxLines = 100

// tell logs what became of a change.
func (c *Control) tell(e *Event) {
	switch e.Verb {
	case RefusedVerb:
		c.tellRefused(e)
		return
	case FellBack:
		c.log.Error("DEGRADED: the documents are refused, the newest confirmed revision is served until they are right", "revision", e.Revision)
		return
	case Confirmed:
		c.log.Info("configuration confirmed", "revision", e.Revision, "via", string(e.Via), "who", e.Who, "why", e.Why)
		return
	case Reverted:
		c.log.Warn("configuration reverted, nobody has confirmed it", "why", e.Why)
	}
	attrs := []any{
		"revision", e.Revision, "took", e.Took.Round(time.Microsecond).String(),
		"ports", len(e.After.Ports), "proxies", len(e.After.Proxies), "via", string(e.Via),
	}
	if e.Who != "" {
		attrs = append(attrs, "who", e.Who)
	}
	if e.Why != "" {
		attrs = append(attrs, "why", e.Why)
	}
	c.log.Info("configuration applied", attrs...)
	for _, n := range e.Notes {
		c.log.Warn("note: "+n.Error(), "object", n.Object)
	}
	if !e.Starting {
		c.tellDifference(e.Difference)
	}
}

// tellDifference logs a line for each object that a change has changed.
func (c *Control) tellDifference(d *config.Difference) {
	for _, o := range d.Objects[:min(len(d.Objects), maxLines)] {
		kind := config.KindOf(o.Kind)
		if kind.Single {
			c.log.Info("settings changed", "settings", kind.Name)
			continue
		}
		c.log.Info(kind.Noun+" "+string(o.Change), append([]any{kind.Label, o.Name}, moved(o)...)...)
	}
	if more := len(d.Objects) - maxLines; more > 0 {
		c.log.Info("more objects added, changed or removed", "objects", more)
	}
}

// moved tells from where to where an object has gone that has another address.
func moved(o config.ObjectChange) (attrs []any) {
	for _, f := range o.Fields {
		var from, to string
		if f.Path == "address" && json.Unmarshal(f.Before, &from) == nil && json.Unmarshal(f.After, &to) == nil {
			attrs = []any{"from", from, "to", to}
		}
	}
	return attrs
}

// tellRefused logs why a configuration was not applied.
func (c *Control) tellRefused(e *Event) {
	r := e.Refused
	what := "configuration refused, everything stays as it was"
	if e.Starting {
		what = "configuration refused, nothing is served"
	}
	c.log.Error(what, "problems", max(len(r.Problems), 1))
	for _, p := range r.Problems[:min(len(r.Problems), maxLines)] {
		c.log.Error(p.Error())
	}
	if more := len(r.Problems) - maxLines; more > 0 {
		c.log.Error("more problems; headgate validate lists them all", "problems", more)
	}
	if r.Err != nil {
		c.log.Error(r.Err.Error())
	}
}
