package acme

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// recordSet is an API that reads and writes all values of a name at once.
type recordSet interface {
	// read returns the values without quotes, none if the name is not there. The zone
	// itself is called @.
	read(ctx context.Context, zone, sub string) ([]string, error)
	// write sets the values; none removes the name.
	write(ctx context.Context, zone, sub string, values []string) error
}

// setWriter changes one value of a set of records.
type setWriter struct {
	recordSet
	// zones has a lock for each zone, a *sync.Mutex, so that two orders do not change one
	// set at once: the second would undo what the first has done. An API that is slow
	// holds up no other zone. It is the manager's.
	zones *sync.Map
	// lease waits until no other machine writes the record with a name. Nil is for stores
	// that are not shared.
	lease func(ctx context.Context, record string) (context.Context, func(), error)
}

func newSetWriter(set recordSet) *setWriter { return &setWriter{recordSet: set, zones: &sync.Map{}} }

func (*setWriter) wantsZone() bool { return true }

func (w *setWriter) present(ctx context.Context, zone, name, value string) error {
	return w.change(ctx, zone, name, func(values []string) []string { return append(values, value) }, value, true)
}

func (w *setWriter) cleanUp(ctx context.Context, zone, name, value string) error {
	return w.change(ctx, zone, name, func(values []string) []string {
		return slices.DeleteFunc(values, func(v string) bool { return v == value })
	}, value, false)
}

func (w *setWriter) change(ctx context.Context, zone, name string, edit func([]string) []string, value string, wanted bool) error {
	defer lockIn(w.zones, strings.ToLower(zone))()
	if w.lease != nil {
		held, release, err := w.lease(ctx, strings.ToLower(name))
		if err != nil {
			return err
		}
		defer release()
		ctx = held
	}
	values, err := w.read(ctx, zone, belowAt(name, zone))
	if err != nil {
		return err
	}
	if slices.Contains(values, value) == wanted {
		return nil
	}
	return w.write(ctx, zone, belowAt(name, zone), edit(values))
}

func quoted(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = `"` + v + `"`
	}
	return out
}

func unquoted(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strings.Trim(v, `"`)
	}
	return out
}

// desec reads and writes sets by the API of deSEC, version 1.
type desec struct{ restAPI }

func openDesec(d *DNS) (provider, error) {
	return newSetWriter(desec{newAPI(d, "https://desec.io/api/v1", "Authorization", "Token "+d.Credentials["token"])}), nil
}

// desecTTL is the shortest time that deSEC allows without asking.
const desecTTL = 3600

func (p desec) read(ctx context.Context, zone, sub string) ([]string, error) {
	var set struct{ Records []string }
	err := p.request(ctx, http.MethodGet, "/domains/"+url.PathEscape(zone)+"/rrsets/"+url.PathEscape(sub)+"/TXT/", nil, &set)
	if gone(err) {
		return nil, nil
	}
	return unquoted(set.Records), err
}

func (p desec) write(ctx context.Context, zone, sub string, values []string) error {
	return p.request(ctx, http.MethodPut, "/domains/"+url.PathEscape(zone)+"/rrsets/", []map[string]any{{"subname": sub, "type": "TXT", "ttl": desecTTL, "records": quoted(values)}}, nil)
}

// gandi reads and writes sets by the LiveDNS API of Gandi, version 5.
type gandi struct{ restAPI }

func openGandi(d *DNS) (provider, error) {
	return newSetWriter(gandi{newAPI(d, "https://api.gandi.net/v5/livedns", "Authorization", "Bearer "+d.Credentials["token"])}), nil
}

// gandiTTL is the shortest time that Gandi allows.
const gandiTTL = 300

func (gandi) path(zone, sub string) string {
	return "/domains/" + url.PathEscape(zone) + "/records/" + url.PathEscape(sub) + "/TXT"
}

func (p gandi) read(ctx context.Context, zone, sub string) ([]string, error) {
	var set struct {
		Values []string `json:"rrset_values"`
	}
	err := p.request(ctx, http.MethodGet, p.path(zone, sub), nil, &set)
	if gone(err) {
		return nil, nil
	}
	return unquoted(set.Values), err
}

func (p gandi) write(ctx context.Context, zone, sub string, values []string) error {
	if len(values) == 0 {
		return p.request(ctx, http.MethodDelete, p.path(zone, sub), nil, nil)
	}
	return p.request(ctx, http.MethodPut, p.path(zone, sub), map[string]any{"rrset_ttl": gandiTTL, "rrset_values": quoted(values)}, nil)
}
