package watch

import (
	"time"

	"headgate/internal/control"
	"headgate/internal/discovery"
	"headgate/internal/event"
)

// maxIssues limits the issues that are reported one by one in one check. The status has all
// of them.
const maxIssues = 200

// checkDiscovery compares the state of the providers with what was reported last. A
// provider that has not answered since it started is not reported as lost.
func (w *Watch) checkDiscovery(all []control.ProviderState) {
	now := map[discovery.Issue]bool{}
	there := map[string]bool{}
	reported := 0
	for _, p := range all {
		there[p.Name] = true
		answers, known := w.providers[p.Name]
		about := event.Issue{Provider: p.Name, Message: p.Reason, Hint: p.Hint}
		switch {
		case p.State == discovery.Running && !(known && answers):
			w.providers[p.Name] = true
			w.log.Info("provider answers", "provider", p.Name)
			w.events.Send(event.DiscoveryConnected{Issue: about})
		case p.State == discovery.Failed && (answers || !known):
			w.providers[p.Name] = false
			w.log.Warn("provider does not answer; what it found last stays", "provider", p.Name, "error", p.Reason, "hint", p.Hint)
			w.events.Send(event.DiscoveryLost{Issue: about})
		}
		for _, i := range p.Issues {
			i.Since = time.Time{}
			if now[i] = true; !w.issues[i] && reported < maxIssues {
				reported++
				opened := asEvent(i)
				w.logIssue(&opened)
				w.events.Send(event.DiscoveryIssueOpened{Issue: opened})
			}
		}
	}
	for i := range w.issues {
		if !now[i] && reported < maxIssues {
			reported++
			w.events.Send(event.DiscoveryIssueClosed{Issue: asEvent(i)})
		}
	}
	for name := range w.providers {
		if !there[name] {
			delete(w.providers, name)
		}
	}
	w.issues = now
}

// asEvent returns an issue as events have it.
func asEvent(i discovery.Issue) event.Issue {
	object := i.Container
	if object == "" && i.Name != "" {
		object = i.Kind + " " + i.Name
	}
	return event.Issue{Provider: i.Provider, Object: object, Label: i.Label, Code: string(i.Code), Message: i.Message, Hint: i.Hint}
}

// logIssue logs an issue, without what it does not have.
func (w *Watch) logIssue(i *event.Issue) {
	about := []any{"provider", i.Provider}
	for _, attr := range [][2]string{{"object", i.Object}, {"label", i.Label}, {"code", i.Code}, {"error", i.Message}, {"hint", i.Hint}} {
		if attr[1] != "" {
			about = append(about, attr[0], attr[1])
		}
	}
	w.log.Warn("discovery issue", about...)
}
