package plan

import (
	"fmt"
	"strings"
)

// Text returns the explanation for people.
func (e *Explanation) Text() string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "%-9s %s\n", label, text) }
	if e.Port != "" {
		line("port", e.Port+", "+e.Address)
	}
	if c := e.Certificate; c != nil {
		line("TLS", c.text())
	}
	if e.PublicName != "" {
		line("ECH", "clients with the HTTPS record show "+e.PublicName+" in place of the host")
	}
	if e.Host != "" || e.Class != "" {
		line("host", orNone(e.Host)+classNote(e.Class))
	}
	switch {
	case e.Path == "":
		line("path", e.Asked)
	case e.Path != e.Asked:
		line("path", e.Path+", written as "+e.Asked)
	default:
		line("path", e.Path)
	}
	if e.Proxy != "" {
		e.writeRoute(line)
	}
	if g := e.Gate; g != nil {
		g.write(line)
	}
	if e.Answer != nil {
		line("answer", e.Answer.text())
	}
	if e.Cache != nil {
		line("cache", e.Cache.Text())
	}
	if e.Stores != nil {
		e.Stores.Text(line)
	}
	if e.Retry != "" {
		line("failure", e.Retry)
	}
	if s := e.Split; s != nil {
		line("split", splitText(s))
	}
	for _, note := range e.Notes {
		line("note", note)
	}
	e.writeServers(&b)
	e.writeRoutes(&b)
	return b.String()
}

// writeRoute writes what the selected route does.
func (e *Explanation) writeRoute(line func(label, text string)) {
	line("proxy", e.Proxy)
	if e.Origin != "" {
		line("origin", e.Origin)
	}
	line("route", e.Route)
	if e.Client != e.Peer {
		line("client", e.Client+", by what "+e.Peer+" says")
	}
	line("filters", strings.Join(append(append([]string{}, e.Filters...), e.Source), " → "))
	for _, f := range e.Features {
		if f.Policy != "" || f.Level == "defaults" {
			line("feature", f.Feature+" by "+f.String()+", "+f.Place)
		}
	}
}

func (g *GateDecision) write(line func(label, text string)) {
	verb := "refuses "
	if g.In {
		verb = "lets in "
	}
	line("gate", verb+g.As+": "+g.Rule)
	if g.Session != "" {
		line("session", g.Session)
	}
}

func splitText(s *SplitDecision) string {
	verb := "likely "
	if s.Certain {
		verb = ""
	}
	return fmt.Sprintf("%s%s, by %s; the candidate has %d%%", verb, s.Group, s.Why, s.Share)
}

func (c *Chosen) text() string {
	name := c.Name
	if name == "" {
		name = "none of its own"
	}
	text := fmt.Sprintf("%s (%s): %s", name, c.From, c.Why)
	if !c.NotAfter.IsZero() {
		text += "; " + c.State + " until " + c.NotAfter.UTC().Format("2006-01-02")
	}
	return text
}

func orNone(host string) string {
	if host == "" {
		return "none"
	}
	return host
}

func classNote(class string) string {
	if class == "" {
		return ""
	}
	return ", class " + class
}

func (a *Answered) text() string {
	if a.Status == 0 {
		return "none: nothing listens there"
	}
	text := fmt.Sprintf("%d", a.Status)
	if a.Reason != "" {
		text += " " + a.Reason
	}
	text += ", by " + a.By
	if a.Location != "" {
		text += ", to " + a.Location
	}
	if a.Cause != "" {
		text += ": " + a.Cause
	}
	return text
}

func (e *Explanation) writeServers(b *strings.Builder) {
	before := ""
	for _, s := range e.Servers {
		fmt.Fprintf(b, "\nserver %s, weight %d of %d", s.URL, s.Weight, s.Total)
		if s.Group != "" {
			b.WriteString(", " + s.Group)
		}
		if s.Pinned {
			b.WriteString(", to whom the cookie belongs")
		}
		if s.Backup {
			b.WriteString(", backup")
		}
		if s.State != "" {
			b.WriteString(", is " + s.State)
		}
		if s.Chosen {
			b.WriteString(", chosen by " + e.Balance)
		}
		if s.Head == before {
			b.WriteString(", gets the same\n")
			continue
		}
		before = s.Head
		b.WriteString(", gets\n")
		for part := range strings.SplitSeq(strings.TrimSuffix(s.Head, "\r\n\r\n"), "\r\n") {
			b.WriteString("    " + part + "\n")
		}
	}
}

func (e *Explanation) writeRoutes(b *strings.Builder) {
	if len(e.Routes) == 0 && e.Others == 0 {
		return
	}
	b.WriteString("\nroutes\n")
	for _, r := range e.Routes {
		mark := "-"
		if r.Won {
			mark = "+"
		}
		fmt.Fprintf(b, "  %s proxy %s, path %s: %s\n", mark, r.Proxy, r.Route, r.Why)
	}
	if e.Others > 0 {
		fmt.Fprintf(b, "  - %d for other hosts\n", e.Others)
	}
}
