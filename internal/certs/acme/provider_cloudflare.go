package acme

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/miekg/dns"
)

// cloudflareRecord is a record of any type. The data of an HTTPS record is a cloudflareHTTPS.
type cloudflareRecord struct {
	ID, Type, Name, Content string
	Proxied                 bool
	Data                    json.RawMessage
}

// cloudflareHTTPS is the data of an HTTPS record.
type cloudflareHTTPS struct {
	Priority uint16 `json:"priority"`
	Target   string `json:"target"`
	Value    string `json:"value"`
}

// proxiedHost is the reason of a name whose connections end at Cloudflare.
const proxiedHost unfit = "Cloudflare's proxy is on for the host, and has its own Encrypted Client Hello"

// named returns the records of a name. The error is unfit if it cannot have HTTPS records.
func (c cloudflare) named(ctx context.Context, records, name string) (found []cloudflareRecord, err error) {
	var all struct{ Result []cloudflareRecord }
	if err := c.request(ctx, http.MethodGet, records+"?per_page=100&name="+url.QueryEscape(name), nil, &all); err != nil {
		return nil, err
	}
	for _, r := range all.Result {
		switch {
		case !strings.EqualFold(r.Name, name):
			continue
		case r.Proxied:
			return nil, proxiedHost
		case r.Type == "CNAME":
			return nil, hasAlias(name, cut(r.Content))
		}
		found = append(found, r)
	}
	return found, nil
}

// readHTTPS returns the HTTPS records of a name.
func (c cloudflare) readHTTPS(ctx context.Context, at httpsPlace) (entries []httpsEntry, err error) {
	records, err := c.records(ctx, at.zone)
	if err != nil {
		return nil, err
	}
	found, err := c.named(ctx, records, at.host)
	if err == nil && len(found) == 0 {
		return nil, noOwnRecord
	}
	if err == nil && at.name != at.host {
		found, err = c.named(ctx, records, at.name)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if r.Type != "HTTPS" {
			continue
		}
		rr, err := r.https()
		if err != nil {
			return nil, err
		}
		entries = append(entries, httpsEntry{r.ID, rr})
	}
	return entries, nil
}

// https returns the record as one of the DNS.
func (r *cloudflareRecord) https() (*dns.HTTPS, error) {
	var data cloudflareHTTPS
	err := json.Unmarshal(r.Data, &data)
	if err == nil && strings.ContainsAny(data.Target+data.Value, "\r\n") {
		err = errors.New("it has several lines")
	}
	var rr dns.RR
	if err == nil {
		rr, err = dns.NewRR(fmt.Sprintf("%s 0 IN HTTPS %d %s %s", dns.Fqdn(r.Name), data.Priority, dns.Fqdn(data.Target), data.Value))
	}
	if out, ok := rr.(*dns.HTTPS); ok && err == nil {
		return out, nil
	}
	return nil, fmt.Errorf("the HTTPS record of %s cannot be read: %v", r.Name, err)
}

// writeHTTPS replaces the data of records, and adds one if there are none. The rest of a record,
// such as its TTL and comment, stays.
func (c cloudflare) writeHTTPS(ctx context.Context, at httpsPlace, have, next []httpsEntry) error {
	records, err := c.records(ctx, at.zone)
	if err != nil {
		return err
	}
	for i, e := range next {
		body := map[string]any{"type": "HTTPS", "name": at.name, "data": cloudflareHTTPS{e.rr.Priority, e.rr.Target, paramsText(e.rr)}}
		switch {
		case i >= len(have):
			body["ttl"] = e.rr.Hdr.Ttl
			err = c.request(ctx, http.MethodPost, records, body, nil)
		case have[i].rr != e.rr:
			err = c.request(ctx, http.MethodPatch, records+"/"+url.PathEscape(e.id), body, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
