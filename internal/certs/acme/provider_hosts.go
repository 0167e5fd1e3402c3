package acme

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ionos writes records by the DNS API of IONOS, version 1.
type ionos struct{ restAPI }

func openIonos(d *DNS) (provider, error) {
	return ionos{newAPI(d, "https://api.hosting.ionos.com/dns", "X-Api-Key", d.Credentials["api_key"])}, nil
}

func (ionos) wantsZone() bool { return true }

// zone returns the path of a zone.
func (p ionos) zone(ctx context.Context, zone string) (string, error) {
	var zones []struct{ ID, Name string }
	if err := p.request(ctx, http.MethodGet, "/v1/zones", nil, &zones); err != nil {
		return "", err
	}
	for _, z := range zones {
		if z.Name == zone {
			return "/v1/zones/" + url.PathEscape(z.ID), nil
		}
	}
	return "", noZone(zone, "the account has no zone with this name")
}

func (p ionos) present(ctx context.Context, zone, name, value string) error {
	path, err := p.zone(ctx, zone)
	if err != nil {
		return err
	}
	return p.request(ctx, http.MethodPost, path+"/records", []map[string]any{{"name": name, "type": "TXT", "content": value, "ttl": recordTTL}}, nil)
}

func (p ionos) cleanUp(ctx context.Context, zone, name, value string) error {
	path, err := p.zone(ctx, zone)
	if err != nil {
		return err
	}
	var found struct {
		Records []struct{ ID, Content string }
	}
	if err := p.request(ctx, http.MethodGet, path+"?recordName="+url.QueryEscape(name)+"&recordType=TXT", nil, &found); err != nil {
		return err
	}
	for _, r := range found.Records {
		if strings.Trim(r.Content, `"`) != value {
			continue
		}
		if err := p.request(ctx, http.MethodDelete, path+"/records/"+url.PathEscape(r.ID), nil, nil); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// linode writes records by the API of Linode, version 4.
type linode struct{ restAPI }

func openLinode(d *DNS) (provider, error) {
	return linode{newAPI(d, "https://api.linode.com/v4", "Authorization", "Bearer "+d.Credentials["token"])}, nil
}

func (linode) wantsZone() bool { return true }

// list reads what fits a filter.
func (p linode) list(ctx context.Context, path string, filter map[string]string) ([]linodeEntry, error) {
	text, err := json.Marshal(filter)
	if err != nil {
		return nil, err
	}
	filtered := restAPI{p.base, p.header.Clone()}
	filtered.header.Set("X-Filter", string(text))
	var out struct{ Data []linodeEntry }
	err = filtered.request(ctx, http.MethodGet, path, nil, &out)
	return out.Data, err
}

// linodeEntry is a domain or a record.
type linodeEntry struct {
	ID     int64
	Target string
}

func (p linode) records(ctx context.Context, zone string) (string, error) {
	domains, err := p.list(ctx, "/domains", map[string]string{"domain": zone})
	if err != nil {
		return "", err
	}
	if len(domains) == 0 {
		return "", noZone(zone, "the token sees no domain with this name; it needs the scope domains:read_write")
	}
	return fmt.Sprintf("/domains/%d/records", domains[0].ID), nil
}

// linodeTTL is the shortest TTL that Linode accepts unchanged.
const linodeTTL = 300

func (p linode) present(ctx context.Context, zone, name, value string) error {
	path, err := p.records(ctx, zone)
	if err != nil {
		return err
	}
	return p.request(ctx, http.MethodPost, path, map[string]any{"type": "TXT", "name": below(name, zone), "target": value, "ttl_sec": linodeTTL}, nil)
}

func (p linode) cleanUp(ctx context.Context, zone, name, value string) error {
	path, err := p.records(ctx, zone)
	if err != nil {
		return err
	}
	found, err := p.list(ctx, path, map[string]string{"type": "TXT", "name": below(name, zone)})
	if err != nil {
		return err
	}
	for _, r := range found {
		if strings.Trim(r.Target, `"`) != value {
			continue
		}
		if err := p.request(ctx, http.MethodDelete, fmt.Sprintf("%s/%d", path, r.ID), nil, nil); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// vultr writes records by the API of Vultr, version 2.
type vultr struct{ restAPI }

func openVultr(d *DNS) (provider, error) {
	return vultr{newAPI(d, "https://api.vultr.com/v2", "Authorization", "Bearer "+d.Credentials["api_key"])}, nil
}

func (vultr) wantsZone() bool { return true }

// vultrTTL is the TTL of records.
const vultrTTL = 120

func (p vultr) present(ctx context.Context, zone, name, value string) error {
	return p.request(ctx, http.MethodPost, "/domains/"+url.PathEscape(zone)+"/records", map[string]any{"name": below(name, zone), "type": "TXT", "data": `"` + value + `"`, "ttl": vultrTTL}, nil)
}

// maxPages is how many pages of a zone's records are read.
const maxPages = 100

func (p vultr) cleanUp(ctx context.Context, zone, name, value string) error {
	path := "/domains/" + url.PathEscape(zone) + "/records"
	cursor := ""
	for range maxPages {
		var found struct {
			Records []struct{ ID, Type, Name, Data string }
			Meta    struct{ Links struct{ Next string } }
		}
		if err := p.request(ctx, http.MethodGet, path+"?per_page=500&cursor="+url.QueryEscape(cursor), nil, &found); err != nil {
			return err
		}
		for _, r := range found.Records {
			if r.Type != "TXT" || r.Name != below(name, zone) || strings.Trim(r.Data, `"`) != value {
				continue
			}
			if err := p.request(ctx, http.MethodDelete, path+"/"+url.PathEscape(r.ID), nil, nil); err != nil && !gone(err) {
				return err
			}
		}
		if cursor = found.Meta.Links.Next; cursor == "" {
			break
		}
	}
	return nil
}

// netcup writes records by the CCP API of netcup. Every change needs a session.
type netcup struct {
	restAPI
	customer, key, password string
}

func openNetcup(d *DNS) (provider, error) {
	c := d.Credentials
	return netcup{newAPI(d, "https://ccp.netcup.net/run/webservice/servers/endpoint.php"), c["customer_number"], c["api_key"], c["api_password"]}, nil
}

func (netcup) wantsZone() bool { return true }

// netcupRecord is a record of a zone. One without an identifier is new.
type netcupRecord struct {
	ID          string `json:"id,omitempty"`
	Hostname    string `json:"hostname"`
	Type        string `json:"type"`
	Destination string `json:"destination"`
	Delete      bool   `json:"deleterecord,omitempty"`
}

// netcupAnswer is what every action answers.
type netcupAnswer struct {
	Status       string
	StatusCode   int
	ShortMessage string
	LongMessage  string
	ResponseData json.RawMessage
}

// The codes of answers that mean something to us.
const (
	netcupNoRecords = 5029
	netcupBadLogin  = 4013
)

func (p netcup) act(ctx context.Context, action string, param map[string]any, out any) error {
	param["customernumber"], param["apikey"] = p.customer, p.key
	var answer netcupAnswer
	if err := p.request(ctx, http.MethodPost, "?JSON", map[string]any{"action": action, "param": param}, &answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		text := cut(fmt.Sprintf("%s answers %d %s: %s", action, answer.StatusCode, answer.ShortMessage, answer.LongMessage))
		switch {
		case answer.StatusCode == netcupNoRecords:
			return &statusError{http.StatusNotFound, text}
		case answer.StatusCode == netcupBadLogin || action == "login":
			return &statusError{http.StatusUnauthorized, text}
		}
		return &statusError{http.StatusBadRequest, text}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer.ResponseData, out); err != nil {
		return fmt.Errorf("%s answers what cannot be read: %w", action, err)
	}
	return nil
}

// within runs what needs a session.
func (p netcup) within(ctx context.Context, run func(session string) error) error {
	var login struct{ APISessionID string }
	if err := p.act(ctx, "login", map[string]any{"apipassword": p.password}, &login); err != nil {
		return err
	}
	err := run(login.APISessionID)
	if e := p.act(ctx, "logout", map[string]any{"apisessionid": login.APISessionID}, nil); err == nil {
		err = e
	}
	return err
}

func (p netcup) update(ctx context.Context, session, zone string, records ...netcupRecord) error {
	return p.act(ctx, "updateDnsRecords", map[string]any{"apisessionid": session, "domainname": zone, "dnsrecordset": map[string]any{"dnsrecords": records}}, nil)
}

func (p netcup) present(ctx context.Context, zone, name, value string) error {
	return p.within(ctx, func(session string) error {
		return p.update(ctx, session, zone, netcupRecord{Hostname: belowAt(name, zone), Type: "TXT", Destination: value})
	})
}

func (p netcup) cleanUp(ctx context.Context, zone, name, value string) error {
	return p.within(ctx, func(session string) error {
		var found struct {
			Records []netcupRecord `json:"dnsrecords"`
		}
		err := p.act(ctx, "infoDnsRecords", map[string]any{"apisessionid": session, "domainname": zone}, &found)
		if gone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		var ours []netcupRecord
		for _, r := range found.Records {
			if r.Type == "TXT" && r.Hostname == belowAt(name, zone) && strings.Trim(r.Destination, `"`) == value {
				r.Delete = true
				ours = append(ours, r)
			}
		}
		if len(ours) == 0 {
			return nil
		}
		return p.update(ctx, session, zone, ours...)
	})
}
