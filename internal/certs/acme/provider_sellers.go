package acme

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// bunny writes records by the API of Bunny DNS.
type bunny struct{ restAPI }

func openBunny(d *DNS) (provider, error) {
	return bunny{newAPI(d, "https://api.bunny.net", "AccessKey", d.Credentials["api_key"])}, nil
}

func (bunny) wantsZone() bool { return true }

// bunnyTXT is the API's number for TXT records.
const bunnyTXT = 3

// bunnyZone is a zone with its records.
type bunnyZone struct {
	ID      int64
	Domain  string
	Records []struct {
		ID          int64
		Type        int
		Name, Value string
	}
}

func (p bunny) zone(ctx context.Context, zone string) (*bunnyZone, error) {
	var found struct{ Items []bunnyZone }
	if err := p.request(ctx, http.MethodGet, "/dnszone?page=1&perPage=1000&search="+url.QueryEscape(zone), nil, &found); err != nil {
		return nil, err
	}
	for i := range found.Items {
		if found.Items[i].Domain == zone {
			return &found.Items[i], nil
		}
	}
	return nil, noZone(zone, "the account has no zone with this name")
}

func (p bunny) check(ctx context.Context, zone, _ string) error {
	_, err := p.zone(ctx, zone)
	return err
}

func (p bunny) present(ctx context.Context, zone, name, value string) error {
	z, err := p.zone(ctx, zone)
	if err != nil {
		return err
	}
	return p.request(ctx, http.MethodPut, fmt.Sprintf("/dnszone/%d/records", z.ID), map[string]any{"Type": bunnyTXT, "Name": below(name, zone), "Value": value, "Ttl": recordTTL}, nil)
}

func (p bunny) cleanUp(ctx context.Context, zone, name, value string) error {
	z, err := p.zone(ctx, zone)
	if err != nil {
		return err
	}
	for _, r := range z.Records {
		if r.Type != bunnyTXT || r.Name != below(name, zone) || strings.Trim(r.Value, `"`) != value {
			continue
		}
		if err := p.request(ctx, http.MethodDelete, fmt.Sprintf("/dnszone/%d/records/%d", z.ID, r.ID), nil, nil); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// dnsimple writes records by the API of DNSimple, version 2.
type dnsimple struct{ restAPI }

func openDNSimple(d *DNS) (provider, error) {
	return dnsimple{newAPI(d, "https://api.dnsimple.com/v2", "Authorization", "Bearer "+d.Credentials["token"])}, nil
}

func (dnsimple) wantsZone() bool { return true }

// records returns the path of a zone's records, which has the account in it.
func (p dnsimple) records(ctx context.Context, zone string) (string, error) {
	var who struct {
		Data struct{ Account *struct{ ID int64 } }
	}
	if err := p.request(ctx, http.MethodGet, "/whoami", nil, &who); err != nil {
		return "", err
	}
	if who.Data.Account == nil {
		return "", &statusError{http.StatusForbidden, "the token is that of a user; make one of the account"}
	}
	return fmt.Sprintf("/%d/zones/%s/records", who.Data.Account.ID, url.PathEscape(zone)), nil
}

// find returns the path of the records, and the identifiers of those with a name and a
// value.
func (p dnsimple) find(ctx context.Context, zone, name, value string) (path string, ids []int64, err error) {
	if path, err = p.records(ctx, zone); err != nil {
		return "", nil, err
	}
	var found struct {
		Data []struct {
			ID      int64
			Content string
		}
	}
	if err := p.request(ctx, http.MethodGet, path+"?type=TXT&name="+url.QueryEscape(below(name, zone)), nil, &found); err != nil {
		return "", nil, err
	}
	for _, r := range found.Data {
		if strings.Trim(r.Content, `"`) == value {
			ids = append(ids, r.ID)
		}
	}
	return path, ids, nil
}

func (p dnsimple) check(ctx context.Context, zone, name string) error {
	_, _, err := p.find(ctx, zone, name, "")
	return err
}

func (p dnsimple) present(ctx context.Context, zone, name, value string) error {
	path, err := p.records(ctx, zone)
	if err != nil {
		return err
	}
	return p.request(ctx, http.MethodPost, path, map[string]any{"name": below(name, zone), "type": "TXT", "content": value, "ttl": recordTTL}, nil)
}

func (p dnsimple) cleanUp(ctx context.Context, zone, name, value string) error {
	path, ids, err := p.find(ctx, zone, name, value)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := p.request(ctx, http.MethodDelete, fmt.Sprintf("%s/%d", path, id), nil, nil); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// godaddy reads and writes sets by the Domains API of GoDaddy, version 1.
type godaddy struct{ restAPI }

func openGoDaddy(d *DNS) (provider, error) {
	c := d.Credentials
	return newSetWriter(godaddy{newAPI(d, "https://api.godaddy.com", "Authorization", "sso-key "+c["api_key"]+":"+c["api_secret"])}), nil
}

// godaddyTTL is the shortest time that GoDaddy allows.
const godaddyTTL = 600

// godaddyRecord is one value of a set.
type godaddyRecord struct {
	Data string `json:"data"`
	TTL  int    `json:"ttl"`
}

func (godaddy) path(zone, sub string) string {
	return "/v1/domains/" + url.PathEscape(zone) + "/records/TXT/" + url.PathEscape(sub)
}

func (p godaddy) read(ctx context.Context, zone, sub string) (values []string, err error) {
	var set []godaddyRecord
	if err := p.request(ctx, http.MethodGet, p.path(zone, sub), nil, &set); err != nil {
		return nil, err
	}
	for _, r := range set {
		values = append(values, r.Data)
	}
	return values, nil
}

func (p godaddy) write(ctx context.Context, zone, sub string, values []string) error {
	if len(values) == 0 {
		return p.request(ctx, http.MethodDelete, p.path(zone, sub), nil, nil)
	}
	var set []godaddyRecord
	for _, v := range values {
		set = append(set, godaddyRecord{v, godaddyTTL})
	}
	return p.request(ctx, http.MethodPut, p.path(zone, sub), set, nil)
}

// scaleway writes records by the Domains and DNS API of Scaleway, version 2 beta 1.
type scaleway struct{ restAPI }

func openScaleway(d *DNS) (provider, error) {
	return scaleway{newAPI(d, "https://api.scaleway.com/domain/v2beta1", "X-Auth-Token", d.Credentials["secret_key"])}, nil
}

func (scaleway) wantsZone() bool { return true }

func (scaleway) path(zone string) string { return "/dns-zones/" + url.PathEscape(zone) + "/records" }

func (p scaleway) change(ctx context.Context, zone string, change map[string]any) error {
	return p.request(ctx, http.MethodPatch, p.path(zone), map[string]any{"changes": []any{change}, "return_all_records": false}, nil)
}

func (p scaleway) check(ctx context.Context, zone, name string) error {
	return p.readable(ctx, p.path(zone)+"?type=TXT&name="+url.QueryEscape(below(name, zone)))
}

func (p scaleway) present(ctx context.Context, zone, name, value string) error {
	record := map[string]any{"name": below(name, zone), "type": "TXT", "data": `"` + value + `"`, "ttl": recordTTL}
	return p.change(ctx, zone, map[string]any{"add": map[string]any{"records": []any{record}}})
}

func (p scaleway) cleanUp(ctx context.Context, zone, name, value string) error {
	record := map[string]any{"name": below(name, zone), "type": "TXT", "data": `"` + value + `"`}
	err := p.change(ctx, zone, map[string]any{"delete": map[string]any{"id_fields": record}})
	if gone(err) {
		return nil
	}
	return err
}
