package control

import (
	"context"
	"log/slog"
	"time"

	"headgate/internal/config/diff"
	"headgate/internal/control/review"
)

// maxLines limits the log lines of one change.
const maxLines = 100

// maxSentences bounds the sentences of a change that are logged. Warnings are logged
// in any case, as many as a review has.
const maxSentences = 40

// logChange logs what became of a change.
func (c *Control) logChange(e *Event) {
	switch e.Verb {
	case RefusedVerb:
		c.logRefused(e)
		return
	case FellBack:
		c.log.Error("DEGRADED: "+e.Why+"; an older revision is served until that is right", "revision", e.Revision)
		return
	case RevertedLocally:
		c.log.Error("DEGRADED: "+e.Why+", and the shared store is away: this machine serves the configuration before", "revision", e.Revision)
		return
	case Confirmed:
		c.log.Info("configuration confirmed", "revision", e.Revision, "via", string(e.Via), "who", e.Who, "why", e.Why)
		return
	case Reverted:
		c.log.Warn("configuration reverted because it was not confirmed", "why", e.Why)
	}
	if e.Via.Discovers() {
		c.logDiscovered(e)
		return
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
	if e.Review != nil {
		c.logReview(e.Review)
	}
}

// logDiscovered logs what containers have changed in one line: they come and go all
// day. What it is in words is there for who looks for it.
func (c *Control) logDiscovered(e *Event) {
	objects := map[diff.Verb]int{}
	for i := range e.Difference.Objects {
		objects[e.Difference.Objects[i].Change]++
	}
	attrs := []any{"via", string(e.Via), "took", e.Took.Round(time.Microsecond).String(), "proxies", len(e.After.Proxies)}
	for _, change := range []diff.Verb{diff.Added, diff.Changed, diff.Removed} {
		if n := objects[change]; n > 0 {
			attrs = append(attrs, string(change), n)
		}
	}
	if e.Review != nil {
		attrs = append(attrs, "severity", string(e.Review.Severity), "summary", e.Review.Summary)
	}
	c.log.Info("configuration applied", attrs...)
	if e.Review == nil || !c.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	for _, line := range e.Review.Lines(maxLines) {
		c.log.Debug(line, "via", string(e.Via))
	}
}

// logReview logs what a change does, a line for each sentence, and what wants
// attention as a warning.
func (c *Control) logReview(r *review.Review) {
	told := 0
	for i := range r.Objects {
		o := &r.Objects[i]
		for _, s := range o.Sentences {
			if s.Code == review.Note {
				continue // logged with all notes
			}
			if told++; told > maxSentences && s.Severity == review.Info {
				continue
			}
			c.logSentence(o, s)
		}
	}
	left := max(told-maxSentences, 0)
	for _, m := range r.More {
		left += m.Count
	}
	if left > 0 {
		c.log.Info("there are more changes; run headgate diff to list all of them", "summary", r.Summary)
	}
}

func (c *Control) logSentence(o *review.Object, s review.Sentence) {
	attrs := []any{"kind", o.Kind}
	if o.Name != "" {
		attrs = append(attrs, "name", o.Name)
	}
	if o.Origin != nil {
		attrs = append(attrs, "origin", o.Origin.String())
	}
	if s.Severity == review.Info {
		c.log.Info(s.Text, attrs...)
		return
	}
	if s.Remedy != "" {
		attrs = append(attrs, "remedy", s.Remedy)
	}
	c.log.Warn(s.Text, append(attrs, "severity", string(s.Severity))...)
}

// logRefused logs why a configuration was not applied.
func (c *Control) logRefused(e *Event) {
	r := e.Refused
	if e.Edit {
		c.log.Warn("change rejected; nothing was changed", "via", string(e.Via), "who", e.Who, "problems", max(len(r.Problems), 1), "error", r.Error())
		return // the client has the response
	}
	what := "configuration refused, everything stays as it was"
	if e.Starting {
		what = "configuration refused, nothing of it is served"
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
