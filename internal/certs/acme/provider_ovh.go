package acme

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ovh writes records by the API of OVHcloud, version 1.0. A zone serves changes once
// it is refreshed.
type ovh struct {
	base                  string
	key, secret, consumer string

	// ahead is by how much the clock of the API is before ours; read once.
	ahead time.Duration
	asked bool
}

func openOVH(d *DNS) (provider, error) {
	c := d.Credentials
	return &ovh{base: newAPI(d, "https://eu.api.ovh.com/1.0").base, key: c["application_key"], secret: c["application_secret"], consumer: c["consumer_key"]}, nil
}

func (*ovh) wantsZone() bool { return true }

// signature returns what shows that a request is ours.
func (p *ovh) signature(method, address, body string, at int64) string {
	sum := sha1.Sum([]byte(strings.Join([]string{p.secret, p.consumer, method, address, body, strconv.FormatInt(at, 10)}, "+")))
	return "$1$" + hex.EncodeToString(sum[:])
}

// readClock requests the time of the API, which rejects signatures with a wrong clock.
func (p *ovh) readClock(ctx context.Context) error {
	if p.asked {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/auth/time", nil)
	if err != nil {
		return err
	}
	answer, err := call(req)
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(strings.TrimSpace(string(answer)), 10, 64)
	if err != nil {
		return fmt.Errorf("GET /auth/time answers no time")
	}
	p.ahead, p.asked = time.Until(time.Unix(at, 0)), true
	return nil
}

func (p *ovh) request(ctx context.Context, method, path string, in, out any) error {
	if err := p.readClock(ctx); err != nil {
		return err
	}
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := time.Now().Add(p.ahead).Unix()
	req.Header.Set("X-Ovh-Application", p.key)
	req.Header.Set("X-Ovh-Consumer", p.consumer)
	req.Header.Set("X-Ovh-Timestamp", strconv.FormatInt(at, 10))
	req.Header.Set("X-Ovh-Signature", p.signature(method, p.base+path, string(body), at))
	if in != nil {
		req.Header.Set("Content-Type", "application/json;charset=utf-8")
	}
	answer, err := call(req)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s answers what cannot be read: %w", method, path, err)
	}
	return nil
}

func (p *ovh) present(ctx context.Context, zone, name, value string) error {
	path := "/domain/zone/" + url.PathEscape(zone)
	if err := p.request(ctx, http.MethodPost, path+"/record", map[string]any{"fieldType": "TXT", "subDomain": below(name, zone), "target": value, "ttl": recordTTL}, nil); err != nil {
		return err
	}
	return p.request(ctx, http.MethodPost, path+"/refresh", nil, nil)
}

func (p *ovh) cleanUp(ctx context.Context, zone, name, value string) error {
	path := "/domain/zone/" + url.PathEscape(zone)
	var ids []int64
	if err := p.request(ctx, http.MethodGet, path+"/record?fieldType=TXT&subDomain="+url.QueryEscape(below(name, zone)), nil, &ids); err != nil {
		return err
	}
	removed := false
	for _, id := range ids[:min(len(ids), maxRecords)] {
		var record struct{ Target string }
		one := fmt.Sprintf("%s/record/%d", path, id)
		if err := p.request(ctx, http.MethodGet, one, nil, &record); err != nil {
			return err
		}
		if strings.Trim(record.Target, `"`) != value {
			continue
		}
		if err := p.request(ctx, http.MethodDelete, one, nil, nil); err != nil && !gone(err) {
			return err
		}
		removed = true
	}
	if !removed {
		return nil
	}
	return p.request(ctx, http.MethodPost, path+"/refresh", nil, nil)
}

// maxRecords limits the records of one name that are read.
const maxRecords = 200
