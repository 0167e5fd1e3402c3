package acmetest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// Zone is the zone example.com at a provider with the API of Cloudflare and a name server. It
// is safe for concurrent use.
type Zone struct {
	// API is the URL of the API, whose token is ZoneToken. Names is the address of the name
	// server.
	API, Names string

	mu struct {
		sync.Mutex
		records []*zoneRecord
		ids     int
		writes  int
		down    bool
		slow    bool
	}
}

// ZoneToken is the token of the API of a Zone.
const ZoneToken = "s3cret"

// zoneRecord is a record as the API has it.
type zoneRecord struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Name    string          `json:"name"`
	Content string          `json:"content"`
	Proxied bool            `json:"proxied"`
	TTL     uint32          `json:"ttl"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// StartZone starts a zone, which ends with the test.
func StartZone(t testing.TB) *Zone {
	t.Helper()
	z := &Zone{}
	api := httptest.NewServer(http.HandlerFunc(z.serveAPI))
	t.Cleanup(api.Close)
	z.API = api.URL
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	server := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(z.serveDNS), NotifyStartedFunc: func() { close(started) }}
	ended := make(chan struct{})
	go func() { defer close(ended); server.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { server.Shutdown(); <-ended })
	z.Names = pc.LocalAddr().String()
	return z
}

// Add adds a record. Content is as zone files have it.
func (z *Zone) Add(kind, name, content string, proxied bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.addLocked(&zoneRecord{Type: kind, Name: name, Content: content, Proxied: proxied, TTL: 3600})
}

func (z *Zone) addLocked(r *zoneRecord) {
	z.mu.ids++
	r.ID = fmt.Sprintf("r%d", z.mu.ids)
	if r.Type == "HTTPS" && r.Data == nil {
		priority, rest, _ := strings.Cut(r.Content, " ")
		target, value, _ := strings.Cut(rest, " ")
		r.Data, _ = json.Marshal(map[string]any{"priority": json.Number(priority), "target": target, "value": value})
	}
	z.mu.records = append(z.mu.records, r)
}

// HTTPS returns the HTTPS records of a name, with their TTL in front.
func (z *Zone) HTTPS(name string) (all []string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, r := range z.mu.records {
		if r.Type == "HTTPS" && r.Name == name {
			all = append(all, fmt.Sprintf("%d %s", r.TTL, r.Content))
		}
	}
	return all
}

// Writes returns how many records the API has added or changed.
func (z *Zone) Writes() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.mu.writes
}

// Fail makes the API answer with 403 from now on, or no longer.
func (z *Zone) Fail(down bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.mu.down = down
}

// Hide makes the name server answer without HTTPS records from now on, or no longer.
func (z *Zone) Hide(slow bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.mu.slow = slow
}

func (z *Zone) serveAPI(w http.ResponseWriter, r *http.Request) {
	z.mu.Lock()
	defer z.mu.Unlock()
	answer := func(status int, result any) {
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]any{"success": status == http.StatusOK, "result": result})
	}
	path, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/zones"), "/z1/dns_records")
	id = strings.TrimPrefix(id, "/")
	query := r.URL.Query()
	switch {
	case z.mu.down || r.Header.Get("Authorization") != "Bearer "+ZoneToken:
		answer(http.StatusForbidden, nil)
	case r.Method == http.MethodGet && r.URL.Path == "/zones":
		zones := []map[string]string{}
		if query.Get("name") == "example.com" {
			zones = append(zones, map[string]string{"id": "z1"})
		}
		answer(http.StatusOK, zones)
	case path != "":
		answer(http.StatusNotFound, nil)
	case r.Method == http.MethodGet:
		found := []*zoneRecord{}
		for _, one := range z.mu.records {
			if one.Name == query.Get("name") && (query.Get("type") == "" || query.Get("type") == one.Type) {
				found = append(found, one)
			}
		}
		answer(http.StatusOK, found)
	case r.Method == http.MethodPost && id == "":
		one := &zoneRecord{}
		if !one.change(r) {
			answer(http.StatusBadRequest, nil)
			return
		}
		z.addLocked(one)
		z.mu.writes++
		answer(http.StatusOK, one)
	case r.Method == http.MethodPatch:
		for _, one := range z.mu.records {
			if one.ID == id && one.change(r) {
				z.mu.writes++
				answer(http.StatusOK, one)
				return
			}
		}
		answer(http.StatusNotFound, nil)
	default:
		answer(http.StatusMethodNotAllowed, nil)
	}
}

// change sets the fields that a request has, and reports whether the record is valid. Of the
// types, only HTTPS can be written.
func (r *zoneRecord) change(rq *http.Request) bool {
	next := *r
	var data struct {
		Priority      uint16
		Target, Value string
	}
	if json.NewDecoder(rq.Body).Decode(&next) != nil || json.Unmarshal(next.Data, &data) != nil || next.Type != "HTTPS" || next.TTL == 0 {
		return false
	}
	next.Content = fmt.Sprintf("%d %s %s", data.Priority, data.Target, data.Value)
	if _, err := next.rr(next.Name); err != nil {
		return false
	}
	*r = next
	return true
}

// rr returns the record with a name.
func (r *zoneRecord) rr(name string) (dns.RR, error) {
	return dns.NewRR(fmt.Sprintf("%s. %d IN %s %s", name, r.TTL, r.Type, r.Content))
}

func (z *Zone) serveDNS(w dns.ResponseWriter, q *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	m := new(dns.Msg)
	m.SetReply(q)
	m.Authoritative = true
	name, kind := strings.ToLower(strings.TrimSuffix(q.Question[0].Name, ".")), q.Question[0].Qtype
	soa, _ := dns.NewRR("example.com. 60 IN SOA ns.example.com. ops.example.com. 1 3600 600 86400 60")
	in := dns.IsSubDomain("example.com.", name+".")
	switch {
	case in && name == "example.com" && kind == dns.TypeSOA:
		m.Answer = append(m.Answer, soa)
	case in:
		m.Ns = append(m.Ns, soa)
	}
	owner := name
	if !z.existsLocked(name) {
		m.Rcode = dns.RcodeNameError
		if _, parent, _ := strings.Cut(name, "."); z.existsLocked("*." + parent) {
			owner, m.Rcode = "*."+parent, dns.RcodeSuccess
		}
	}
	for _, r := range z.mu.records {
		if r.Name != owner || r.Type == "HTTPS" && z.mu.slow {
			continue
		}
		if rr, err := r.rr(name); err == nil && (rr.Header().Rrtype == kind || r.Type == "CNAME") {
			m.Answer = append(m.Answer, rr)
		}
	}
	w.WriteMsg(m)
}

// existsLocked reports whether there are records at a name or below it.
func (z *Zone) existsLocked(name string) bool {
	for _, r := range z.mu.records {
		if r.Name == name || strings.HasSuffix(r.Name, "."+name) {
			return true
		}
	}
	return name == "example.com"
}
