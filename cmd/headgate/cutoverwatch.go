package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/control"
	"headgate/internal/file"
	"headgate/internal/migrate/compare"
	"headgate/internal/server/resolve"
)

// The limits of the checks before a cutover and after it.
const (
	minAnswers   = 20 // the minimum for a meaningful rate
	watchEvery   = time.Second
	maxHosts     = 20
	lookupTime   = 5 * time.Second
	maxReport    = 256 << 20
	longestTTL   = 5 * time.Minute
	maxTroubles  = 20
	failedChecks = 5
)

// preconditions shows what decides about the success of a cutover. Its error is that
// of a change that can never be made.
func (c *cutover) preconditions(ctx context.Context) error {
	for _, m := range c.moves {
		c.printf("port %s", m)
	}
	err := c.to.change(ctx, http.MethodPost, "/config/plan", c.status.ETag, edits(c.moves), &json.RawMessage{})
	switch {
	case busy(err) && *c.wait > 0:
		c.printf("not free yet: %v", err)
	case err != nil:
		return err
	default:
		c.printf("the new addresses are not in use")
	}
	if c.status.Pending != nil {
		return fmt.Errorf("revision %s is waiting to be confirmed; run headgate confirm, or wait until %s", c.status.Pending.Revision, c.status.Pending.Until.Local().Format(time.DateTime))
	}
	c.certificates()
	if !*c.noDNS {
		c.dns(ctx)
	}
	return c.compared()
}

// certificates reports hosts without a certificate that clients trust.
func (c *cutover) certificates() {
	lines := 0
	report := func(format string, args ...any) {
		if lines++; lines <= maxTroubles {
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
	case lines > maxTroubles:
		c.printf("certificates: %d more", lines-maxTroubles)
	case lines == 0 && *c.https+*c.http3 != "":
		c.printf("certificates: ready")
	}
}

// dns reports the addresses of the hosts, and how long resolvers cache them.
func (c *cutover) dns(ctx context.Context) {
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

// compared reports the result of a comparison.
func (c *cutover) compared() error {
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

// counts are what was answered until a moment.
type counts struct {
	Begin  time.Time `json:"begin"`
	Points []struct {
		Time         time.Time `json:"time"`
		Requests     int64     `json:"requests"`
		ServerErrors int64     `json:"errors_5xx"`
	} `json:"points"`
}

// counts requests the counts of the last hour.
func (to *remote) counts(ctx context.Context) (*counts, error) {
	var n counts
	return &n, to.call(ctx, http.MethodGet, "/series?step=10s&period=1h", nil, &n)
}

// since returns the number of responses since an earlier count, and how many of them were
// 5xx.
func (n *counts) since(before *counts) (requests, failed int64) {
	was := map[int64][2]int64{}
	var last time.Time
	for _, p := range before.Points {
		was[p.Time.UnixNano()] = [2]int64{p.Requests, p.ServerErrors}
		last = p.Time
	}
	for _, p := range n.Points {
		if p.Time.Before(last) {
			continue
		}
		w := was[p.Time.UnixNano()]
		requests += max(0, p.Requests-w[0])
		failed += max(0, p.ServerErrors-w[1])
	}
	return requests, failed
}

func healthyServers(s *control.Status) (n int) {
	for _, p := range s.Proxies {
		n += p.Healthy
	}
	return n
}

// watch checks a cutover continuously, and confirms or reverts it.
func (c *cutover) watch(ctx context.Context, done *answered, before *counts) error {
	end := time.Now().Add(time.Until(done.Until) * 3 / 4)
	c.printf("watching until %s", end.Local().Format(time.DateTime))
	was, failures := healthyServers(&c.status.Status), 0
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for time.Now().Before(end) {
		select {
		case <-ctx.Done():
			c.printf("no longer watching: run headgate confirm to keep revision %s; otherwise the ports are reverted by %s", done.Revision, done.Until.Local().Format(time.DateTime))
			return context.Cause(ctx)
		case <-tick.C:
		}
		trouble, err := c.trouble(ctx, done, before, was)
		switch {
		case errors.Is(err, errNotPending):
			c.printf("%v", err)
			return nil
		case ctx.Err() != nil:
		case err != nil:
			if failures++; failures >= failedChecks {
				return fmt.Errorf("%w; the ports are reverted automatically by %s", err, done.Until.Local().Format(time.DateTime))
			}
		case trouble != "":
			c.printf("%s", trouble)
			if err := c.revert(ctx, done.Revision); err != nil {
				return err
			}
			if err := c.letGo(ctx, reversed(c.moves)); err != nil {
				return err
			}
			return errors.New("the cutover was reverted")
		default:
			failures = 0
		}
	}
	if err := c.to.call(ctx, http.MethodPost, "/confirm", map[string]string{"revision": done.Revision}, &json.RawMessage{}); err != nil {
		return err
	}
	c.printf("revision %s confirmed; keep the configuration of the old proxy until you are sure. To go back, run headgate cutover --back", done.Revision)
	return nil
}

// errNotPending is returned if the change was decided by another client.
var errNotPending = errors.New("the change was confirmed or reverted elsewhere")

// trouble describes which limit is exceeded, "" for none.
func (c *cutover) trouble(ctx context.Context, done *answered, before *counts, was int) (string, error) {
	var now cutoverStatus
	if err := c.to.call(ctx, http.MethodGet, "/status", nil, &now); err != nil {
		return "", err
	}
	if now.Pending == nil || now.Pending.Revision != done.Revision {
		return "", errNotPending
	}
	if is := healthyServers(&now.Status); was > 0 && float64(is)*100 < *c.minHealthy*float64(was) {
		return fmt.Sprintf("%d of the %d servers that were healthy remain healthy, less than %g%%", is, was, *c.minHealthy), nil
	}
	n, err := c.to.counts(ctx)
	if err != nil {
		return "", err
	}
	if all, failed := n.since(before); all >= minAnswers && float64(failed)*100 > *c.maxErrors*float64(all) {
		return fmt.Sprintf("%d of %d responses since the cutover are 5xx, more than %g%%", failed, all, *c.maxErrors), nil
	}
	return "", nil
}
