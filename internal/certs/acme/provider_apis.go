package acme

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// The providers in this file use the APIs of DNS hosters. Each implements only what is
// needed; request has what they share.

// anEndpoint is the credential with another URL of the same API, such as that of a proxy
// that holds the real credentials.
const anEndpoint = "endpoint"

// restAPI is the API of a provider: its URL and the credentials.
type restAPI struct {
	base   string
	header http.Header
}

func newAPI(d *DNS, base string, header ...string) restAPI {
	a := restAPI{base: strings.TrimSuffix(cmp.Or(d.Credentials[anEndpoint], base), "/"), header: http.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		a.header.Set(header[i], header[i+1])
	}
	return a
}

// request sends a request whose body is in, nil for none, and reads the answer into
// out, nil for an answer that does not matter.
func (a restAPI) request(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = a.header.Clone()
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := call(req)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s answers what cannot be read: %w", method, req.URL.Path, err)
	}
	return nil
}

// readable reports whether a path can be read with the credentials.
func (a restAPI) readable(ctx context.Context, path string) error {
	return a.request(ctx, http.MethodGet, path, nil, nil)
}

// gone reports whether an error means that a resource does not exist.
func gone(err error) bool {
	var s *statusError
	return errors.As(err, &s) && s.status == http.StatusNotFound
}

// below returns a name as it is written within its zone, "" for the zone itself.
func below(name, zone string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, zone), ".")
}

// belowAt is below for APIs that call the zone itself @.
func belowAt(name, zone string) string { return cmp.Or(below(name, zone), "@") }

// cloudflare writes records by the API of Cloudflare, version 4.
type cloudflare struct{ restAPI }

func openCloudflare(d *DNS) (provider, error) {
	return cloudflare{newAPI(d, "https://api.cloudflare.com/client/v4", "Authorization", "Bearer "+d.Credentials["api_token"])}, nil
}

func (cloudflare) wantsZone() bool { return true }

// records returns the path of a zone's records.
func (c cloudflare) records(ctx context.Context, zone string) (string, error) {
	var zones struct{ Result []struct{ ID string } }
	if err := c.request(ctx, http.MethodGet, "/zones?name="+url.QueryEscape(zone), nil, &zones); err != nil {
		return "", err
	}
	if len(zones.Result) == 0 {
		return "", noZone(zone, "the token sees no such zone; it needs the permissions Zone: Read and DNS: Edit for it")
	}
	return "/zones/" + url.PathEscape(zones.Result[0].ID) + "/dns_records", nil
}

// record returns the path of the zone's records, and the identifier of a record, ""
// if it is not there.
func (c cloudflare) record(ctx context.Context, zone, name, value string) (records, id string, err error) {
	if records, err = c.records(ctx, zone); err != nil {
		return "", "", err
	}
	var found struct {
		Result []struct{ ID, Content string }
	}
	if err := c.request(ctx, http.MethodGet, records+"?type=TXT&name="+url.QueryEscape(name), nil, &found); err != nil {
		return "", "", err
	}
	for _, r := range found.Result {
		if strings.Trim(r.Content, `"`) == value {
			return records, r.ID, nil
		}
	}
	return records, "", nil
}

func (c cloudflare) present(ctx context.Context, zone, name, value string) error {
	records, id, err := c.record(ctx, zone, name, value)
	if err != nil || id != "" {
		return err
	}
	return c.request(ctx, http.MethodPost, records, map[string]any{"type": "TXT", "name": name, "content": `"` + value + `"`, "ttl": 120}, nil)
}

func (c cloudflare) cleanUp(ctx context.Context, zone, name, value string) error {
	records, id, err := c.record(ctx, zone, name, value)
	if err != nil || id == "" {
		return err
	}
	return c.request(ctx, http.MethodDelete, records+"/"+url.PathEscape(id), nil, nil)
}

// digitalOcean writes records by the API of DigitalOcean, version 2.
type digitalOcean struct{ restAPI }

func openDigitalOcean(d *DNS) (provider, error) {
	return digitalOcean{newAPI(d, "https://api.digitalocean.com/v2", "Authorization", "Bearer "+d.Credentials["token"])}, nil
}

func (digitalOcean) wantsZone() bool { return true }

func (p digitalOcean) present(ctx context.Context, zone, name, value string) error {
	return p.request(ctx, http.MethodPost, "/domains/"+url.PathEscape(zone)+"/records", map[string]any{"type": "TXT", "name": belowAt(name, zone), "data": value, "ttl": 30}, nil)
}

func (p digitalOcean) cleanUp(ctx context.Context, zone, name, value string) error {
	records := "/domains/" + url.PathEscape(zone) + "/records"
	var found struct {
		Records []struct {
			ID   int64
			Data string
		} `json:"domain_records"`
	}
	if err := p.request(ctx, http.MethodGet, records+"?type=TXT&per_page=200&name="+url.QueryEscape(name), nil, &found); err != nil {
		return err
	}
	for _, r := range found.Records {
		if r.Data != value {
			continue
		}
		if err := p.request(ctx, http.MethodDelete, fmt.Sprintf("%s/%d", records, r.ID), nil, nil); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// porkbun writes records by the API of Porkbun, version 3. Its credentials are in the
// body of every request.
type porkbun struct {
	restAPI
	key, secret string
}

func openPorkbun(d *DNS) (provider, error) {
	return porkbun{newAPI(d, "https://api.porkbun.com/api/json/v3"), d.Credentials["api_key"], d.Credentials["secret_api_key"]}, nil
}

func (porkbun) wantsZone() bool { return true }

func (p porkbun) call(ctx context.Context, path string, more map[string]string) ([]porkbunRecord, error) {
	in := map[string]string{"apikey": p.key, "secretapikey": p.secret}
	for k, v := range more {
		in[k] = v
	}
	var out struct {
		Status, Message string
		Records         []porkbunRecord
	}
	if err := p.request(ctx, http.MethodPost, path, in, &out); err != nil {
		return nil, err
	}
	if out.Status != "SUCCESS" {
		return nil, &statusError{http.StatusBadRequest, "POST " + path + " answers " + cut(out.Status+": "+out.Message)}
	}
	return out.Records, nil
}

type porkbunRecord struct {
	ID      json.Number // written as a text or as a number
	Content string
}

func (p porkbun) present(ctx context.Context, zone, name, value string) error {
	_, err := p.call(ctx, "/dns/create/"+url.PathEscape(zone), map[string]string{"name": below(name, zone), "type": "TXT", "content": value, "ttl": "600"})
	return err
}

func (p porkbun) cleanUp(ctx context.Context, zone, name, value string) error {
	found, err := p.call(ctx, "/dns/retrieveByNameType/"+url.PathEscape(zone)+"/TXT/"+url.PathEscape(below(name, zone)), nil)
	if err != nil {
		return err
	}
	for _, r := range found {
		if strings.Trim(r.Content, `"`) != value {
			continue
		}
		if _, err := p.call(ctx, "/dns/delete/"+url.PathEscape(zone)+"/"+r.ID.String(), nil); err != nil {
			return err
		}
	}
	return nil
}

// acmeDNS writes to a server of acme-dns, to which _acme-challenge is an alias by a CNAME
// record. It keeps the two newest values of a name, so none is removed.
type acmeDNS struct {
	restAPI
	subdomain string
}

func openACMEDNS(d *DNS) (provider, error) {
	c := d.Credentials
	return acmeDNS{newAPI(d, "https://auth.acme-dns.io", "X-Api-User", c["username"], "X-Api-Key", c["password"]), c["subdomain"]}, nil
}

func (acmeDNS) wantsZone() bool { return false }

func (p acmeDNS) present(ctx context.Context, _, _, value string) error {
	return p.request(ctx, http.MethodPost, "/update", map[string]string{"subdomain": p.subdomain, "txt": value}, nil)
}

func (acmeDNS) cleanUp(context.Context, string, string, string) error { return nil }

// duckDNS writes the one TXT record that a name below duckdns.org has.
type duckDNS struct{ base, token string }

func openDuckDNS(d *DNS) (provider, error) {
	return duckDNS{strings.TrimSuffix(cmp.Or(d.Credentials[anEndpoint], "https://www.duckdns.org"), "/"), d.Credentials["token"]}, nil
}

func (duckDNS) wantsZone() bool { return false }

func (p duckDNS) present(ctx context.Context, _, name, value string) error {
	return p.update(ctx, name, url.Values{"txt": {value}})
}

func (p duckDNS) cleanUp(ctx context.Context, _, name, value string) error {
	return p.update(ctx, name, url.Values{"txt": {value}, "clear": {"true"}})
}

func (p duckDNS) update(ctx context.Context, name string, query url.Values) error {
	host, ok := strings.CutSuffix(name, ".duckdns.org")
	if !ok {
		return fmt.Errorf("%s is not below duckdns.org", name)
	}
	query.Set("domains", host[strings.LastIndex(host, ".")+1:])
	query.Set("token", p.token)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/update?"+query.Encode(), nil)
	if err != nil {
		return errors.New("the endpoint is not a URL") // the error has the token in it
	}
	answer, err := call(req)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(answer), []byte("OK")) {
		return errors.New("the token or the name is refused")
	}
	return nil
}
