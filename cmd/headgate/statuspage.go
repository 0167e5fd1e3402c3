package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"headgate/internal/control"
	"headgate/internal/pair"
	"headgate/internal/plan"
	"headgate/internal/server/health"
)

// statusPage is the page /status of the admin listener.
type statusPage struct {
	control.Status
	// Pair is the state of the machine in its pair. It is absent if it is in none.
	Pair *pair.State `json:"pair,omitempty"`
}

// newStatusPage returns the page; p is nil for a machine that is in no pair.
func newStatusPage(s control.Status, p *pair.Store) statusPage {
	page := statusPage{Status: s}
	if p != nil {
		state := p.State()
		page.Pair = &state
	}
	return page
}

// print writes the page as tables. With all every server is listed, else those that
// are not well; with checks their checks are.
func (s *statusPage) print(out io.Writer, all, checks bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "headgate is %s", s.State)
	if !s.Since.IsZero() {
		fmt.Fprintf(w, ", configuration %s applied %s ago", s.Revision, ago(s.Since))
	}
	fmt.Fprintln(w)
	s.printProcess(w)
	s.printAdmin(w)
	printPair(w, s.Pair)
	if wrong := s.attention(); wrong != "" {
		fmt.Fprintf(w, "! %s\n", wrong)
	}
	for _, source := range s.Sources {
		for _, issue := range source.Issues {
			fmt.Fprintf(w, "! %s: %s\n", source.Name, issue)
		}
	}
	s.printPorts(w)
	s.printECH(w)
	s.printProxies(w)
	s.printSplits(w)
	s.printStreams(w, all)
	s.printServers(w, all)
	if !checks {
		s.printCertificates(w)
	}
	if checks {
		s.printChecks(w)
	}
	return w.Flush()
}

// printProcess writes which process serves, whether it is being replaced, and which one it has
// replaced while that still has connections. A headgate that shows none is older.
func (s *statusPage) printProcess(w io.Writer) {
	p := &s.Process
	if p.PID == 0 {
		return
	}
	fmt.Fprintf(w, "version %s, generation %d, process %d\n", printable(p.Version), p.Generation, p.PID)
	if p.Running {
		fmt.Fprintln(w, "an upgrade is in progress; changes are rejected until it is complete")
	}
	if old := p.Previous; old != nil {
		connections := "connections"
		if old.Connections == 1 {
			connections = "connection"
		}
		fmt.Fprintf(w, "replaced process %d (version %s, generation %d) %s ago; it still has %d %s\n",
			old.PID, printable(old.Version), old.Generation, ago(old.Since), old.Connections, connections)
	}
}

// printAdmin writes how to reach the admin listener from elsewhere.
func (s *statusPage) printAdmin(w io.Writer) {
	if s.Admin != nil && s.Admin.PublicKey != "" {
		fmt.Fprintf(w, "admin listener https://%s, SHA-256 fingerprint of its public key %s\n", s.Admin.Address, printable(s.Admin.PublicKey))
	}
}

// attention counts what needs attention, as the overview of the console does; "" for
// nothing.
func (s *statusPage) attention() string {
	down, degraded := 0, 0
	count := func(state string) {
		switch state {
		case plan.ProxyDown:
			down++
		case plan.ProxyDegraded, plan.RouteFailingOpen:
			degraded++
		}
	}
	for i := range s.Proxies {
		count(s.Proxies[i].State)
	}
	for _, p := range slices.Concat(s.TCPProxies, s.UDPProxies) {
		count(p.State)
	}
	var parts []string
	add := func(n int, one, more string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, more))
		}
	}
	add(down, "proxy is down", "proxies are down")
	add(degraded, "proxy is degraded", "proxies are degraded")
	add(len(control.CertificatesByUrgency(s.Certificates)), "certificate needs attention", "certificates need attention")
	return strings.Join(parts, ", ")
}

func (s *statusPage) printPorts(w io.Writer) {
	fmt.Fprint(w, "\nPORT\tADDRESS\tPROTOCOL\tSTATE\tSINCE\tCONNECTIONS\tORIGIN\tNOTE\n")
	for i := range s.Ports {
		p := &s.Ports[i]
		note := p.Hint
		if p.Reason != p.State { // permission_denied is both
			note = strings.TrimSpace(p.Reason + " " + p.Hint)
		}
		if p.State == plan.ProxyElsewhere {
			note = "only on " + strings.Join(p.Nodes, ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", p.Name, p.Address, p.Protocol, p.State, ago(p.Since), p.Connections, origin(p.Origin), note)
	}
}

func (s *statusPage) printProxies(w io.Writer) {
	if len(s.Proxies) == 0 && len(s.TCPProxies)+len(s.UDPProxies) > 0 {
		return
	}
	fmt.Fprint(w, "\nPROXY\tSTATE\tHEALTHY\tHOSTS\tORIGIN\tNOTE\n")
	for i := range s.Proxies {
		p := &s.Proxies[i]
		state := p.State
		if p.FailingOpen > 0 && p.State == plan.ProxyDegraded {
			state += ", failing open"
		}
		reason := strings.TrimPrefix(p.Reason, "failing open; ")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, state, healthy(p.Healthy, p.Unknown, p.Total), hosts(p.VirtualHosts), origin(p.Origin), reason)
	}
}

// origin is where an object is defined: a file without its directory, a container, or the URL of
// a document.
func origin(text string) string {
	switch {
	case text == "":
		return "-"
	case strings.Contains(text, "://"):
		return printable(text)
	}
	return filepath.Base(text)
}

// healthy returns the number of healthy servers, and of those whose state is unknown.
func healthy(well, unknown, total int) string {
	switch {
	case total == 0:
		return "-"
	case unknown > 0:
		return fmt.Sprintf("%d/%d (%d unknown)", well, total, unknown)
	}
	return fmt.Sprintf("%d/%d", well, total)
}

// printCertificates lists the certificates with the days that they have left.
func (s *statusPage) printCertificates(w io.Writer) {
	if len(s.Certificates) == 0 {
		return
	}
	fmt.Fprint(w, "\nCERTIFICATE\tSOURCE\tSTATE\tLEFT\tEXPIRES\tNAMES\tNOTE\n")
	for i := range s.Certificates {
		c := &s.Certificates[i]
		ends, names := "-", "-"
		if !c.NotAfter.IsZero() {
			ends = c.NotAfter.UTC().Format(time.DateOnly)
		}
		if len(c.Names) > 0 {
			names = hosts(c.Names)
		}
		note := c.Problem
		if c.Hint != "" {
			note += "; " + c.Hint
		}
		if note != "" && c.Source == control.CertificateACME {
			note += " (headgate acme status " + c.Name + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Source, c.State, left(c.NotAfter), ends, names, note)
	}
}

// left returns in days, or the hours of the last two, how long a certificate is valid.
func left(notAfter time.Time) string {
	d := time.Until(notAfter)
	switch {
	case notAfter.IsZero():
		return "-"
	case d <= 0:
		return "none"
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// printStreams lists the TCP and UDP proxies, with those of their servers that are
// not well, or with all.
func (s *statusPage) printStreams(w io.Writer, all bool) {
	streams := slices.Concat(s.TCPProxies, s.UDPProxies)
	if len(streams) == 0 {
		return
	}
	fmt.Fprint(w, "\nSTREAM\tPROTOCOL\tFROM\tSTATE\tHEALTHY\tCONNECTIONS\tORIGIN\tNOTE\n")
	for i := range streams {
		p := &streams[i]
		from := p.Address + p.Port
		if names := slices.Concat(p.SNI, p.ALPN); len(names) > 0 {
			from += ": " + hosts(names)
		}
		var notes []string
		for j := range p.Servers {
			srv := &p.Servers[j]
			if bad := srv.State == health.Unhealthy || srv.State == health.Ejected; bad || all {
				notes = append(notes, strings.TrimSpace(fmt.Sprintf("%s %s %s", srv.Address, srv.State, srv.LastError)))
			}
		}
		if len(notes) == 0 && p.Reason != "" {
			notes = append(notes, p.Reason)
		}
		state := strings.ReplaceAll(p.State, "_", " ")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", p.Name, p.Protocol, from, state, healthy(p.Healthy, p.Unknown, len(p.Servers)), p.Connections, origin(p.Origin), strings.Join(notes, "; "))
	}
}

// hosts names the first of a proxy's hosts.
func hosts(all []string) string {
	switch len(all) {
	case 0:
		return "any"
	case 1, 2:
		return strings.Join(all, " ")
	}
	return fmt.Sprintf("%s and %d more", all[0], len(all)-1)
}

func (s *statusPage) printServers(w io.Writer, all bool) {
	begun := false
	s.eachServer(func(proxy, route string, srv *plan.ServerState) {
		if !all && srv.Usable() && srv.State != health.SlowStart && srv.State != health.Draining {
			return
		}
		if !begun {
			fmt.Fprint(w, "\nSERVER\tPROXY\tROUTE\tSTATE\tSINCE\tWEIGHT\tACTIVE\tCHECKS\tWHY\n")
			begun = true
		}
		why := srv.Reason
		if !srv.Usable() && srv.LastError != "" {
			why += ": " + srv.LastError
		}
		if !srv.Until.IsZero() {
			why += fmt.Sprintf(" (for %s more)", time.Until(srv.Until).Round(time.Second))
		}
		url := srv.URL
		if srv.Address != "" {
			url += " at " + srv.Address
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", url, proxy, route, srv.Word(), ago(srv.Since), srv.Weight, srv.Active, srv.Recent, why)
	})
}

func (s *statusPage) printChecks(w io.Writer) {
	s.eachServer(func(_, route string, srv *plan.ServerState) {
		if len(srv.Results) == 0 {
			return
		}
		fmt.Fprintf(w, "\nCHECKS OF %s\tROUTE %s\tSTATUS\tTOOK\tERROR\n", srv.URL, route)
		for _, r := range srv.Results {
			word := "passed"
			if !r.Healthy {
				word = "failed"
			}
			status := "-" // no response, or the check only connects
			if r.Status != 0 {
				status = strconv.Itoa(r.Status)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%.1f ms\t%s\n", r.At.Local().Format(time.DateTime), word, status, r.Took, r.Error)
		}
	})
}

// eachServer goes over the servers of all proxies.
func (s *statusPage) eachServer(look func(proxy, route string, srv *plan.ServerState)) {
	for i := range s.Proxies {
		for j := range s.Proxies[i].Routes {
			r := &s.Proxies[i].Routes[j]
			for k := range r.Servers {
				look(s.Proxies[i].Name, r.Path, &r.Servers[k])
			}
		}
	}
}

// ago returns how long something is ago, in its two largest units.
func ago(t time.Time) string {
	d := max(time.Since(t), 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
