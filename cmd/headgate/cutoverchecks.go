package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/file"
	"headgate/internal/migrate/compare"
	"headgate/internal/server/resolve"
)

// The limits of the checks before a cutover.
const (
	maxHosts   = 20
	lookupTime = 5 * time.Second
	maxReport  = 256 << 20
	longestTTL = 5 * time.Minute
	maxLines   = 20
)

// preconditions prints what decides about the success of a cutover. The error is that of a
// change that cannot be made.
func (c *cutoverRun) preconditions(ctx context.Context) error {
	for _, m := range c.moves {
		c.printf("port %s", moveText(m))
	}
	if c.status.Pending != nil {
		return fmt.Errorf("revision %s is waiting to be confirmed; run headgate confirm, or wait until %s", c.status.Pending.Revision, c.status.Pending.Until.Local().Format(time.DateTime))
	}
	_, err := c.post(ctx, true)
	switch {
	case inUse(err) && *c.wait > 0:
		c.printf("not free yet: %v", err)
	case err != nil:
		return err
	default:
		c.printf("the new addresses are not in use")
	}
	c.certificates()
	if !*c.noDNS {
		c.dns(ctx)
	}
	return c.compared()
}

// certificates prints the hosts without a certificate that clients trust.
func (c *cutoverRun) certificates() {
	lines := 0
	report := func(format string, args ...any) {
		if lines++; lines <= maxLines {
			c.printf(format, args...)
		}
	}
	for _, p := range c.status.Ports {
		if len(p.SelfSigned) > 0 && p.State != "draining" {
			report("certificates: port %s has a self-signed certificate for %s; browsers will reject it", p.Name, strings.Join(p.SelfSigned[:min(len(p.SelfSigned), 10)], ", "))
		}
	}
	for _, r := range c.status.ACME {
		if r.Trouble != nil {
			report("certificates: %s is %s: %s; %s", r.Name, r.State, r.Trouble.Message, r.Trouble.Hint)
		} else if r.NotAfter.IsZero() {
			report("certificates: %s is %s and has no certificate yet; HTTP-01 needs port 80, TLS-ALPN-01 needs port 443", r.Name, r.State)
		}
	}
	switch {
	case lines > maxLines:
		c.printf("certificates: %d more", lines-maxLines)
	case lines == 0 && *c.https+*c.http3 != "":
		c.printf("certificates: ready")
	}
}

// dns prints the addresses that the hosts resolve to, and how long they are cached.
func (c *cutoverRun) dns(ctx context.Context) {
	var hosts []string
	for _, p := range c.status.Proxies {
		for _, h := range p.VirtualHosts {
			if _, err := netip.ParseAddr(h); err != nil && !strings.ContainsAny(h, "*~:/^") && strings.Contains(h, ".") && !slices.Contains(hosts, h) {
				hosts = append(hosts, h)
			}
		}
	}
	more := max(0, len(hosts)-maxHosts)
	hosts = hosts[:len(hosts)-more]
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	lines := make([]string, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() { lines[i] = lookup(ctx, h) })
	}
	all.Wait()
	for _, line := range lines {
		c.printf("DNS: %s", line)
	}
	if more > 0 {
		c.printf("DNS: %d more hosts were not resolved", more)
	}
}

func lookup(ctx context.Context, host string) string {
	addrs, ttl, err := resolve.Lookup(ctx, host)
	if err != nil {
		return fmt.Sprintf("%s cannot be resolved: %v", host, err)
	}
	words := make([]string, 0, len(addrs))
	for _, a := range addrs[:min(len(addrs), 4)] {
		words = append(words, a.String())
	}
	line := host + " resolves to " + strings.Join(words, ", ")
	switch {
	case ttl < 0:
		return line
	case ttl > longestTTL:
		return fmt.Sprintf("%s, cached for up to %s; before you change the record, lower its TTL to 5m one day ahead", line, ttl)
	}
	return fmt.Sprintf("%s, cached for up to %s", line, ttl)
}

// compared prints the result of a comparison from its report.
func (c *cutoverRun) compared() error {
	if *c.report == "" {
		return nil
	}
	data, err := file.Read(*c.report, maxReport, "the report is larger than 256 MiB")
	if err != nil {
		return err
	}
	var r compare.Report
	if err := json.Unmarshal(data, &r); err != nil || r.Requests == 0 {
		return fmt.Errorf("%s is not a report of headgate compare -o json", *c.report)
	}
	c.printf("compare: %d of %d requests had the same response, on %s", r.Ready, r.Requests, r.Began.Local().Format(time.DateTime))
	return nil
}
