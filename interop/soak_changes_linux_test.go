package interop

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// changes changes the configuration and the servers all the time, one after another, and
// none that takes a proxy from its clients.
func (s *soak) changes() {
	type fields map[string]any
	extra := 0
	var archive []byte
	moves := []func(r *rand.Rand){
		func(r *rand.Rand) {
			s.api("PATCH", "/proxies/good", fields{"description": fmt.Sprint("change ", r.Uint32()), "compression": choose(r, any(nil), any(fields{}))})
		},
		func(r *rand.Rand) {
			s.api("PATCH", "/proxies/cached", fields{"cache": fields{"default_ttl": choose(r, "1s", "3s"), "stale_while_revalidate": "2s", "memory_limit": choose(r, "1MiB", "8MiB")}})
		},
		func(r *rand.Rand) { s.api("POST", "/cache/purge", fields{"all": true}) },
		func(r *rand.Rand) {
			extra++
			s.api("POST", "/proxies", fields{"name": fmt.Sprint("extra-", extra), "virtual_hosts": []string{fmt.Sprintf("e%d.test", extra)}, "routes": []fields{{"fixed_response": fields{"status": 204}}}})
		},
		func(r *rand.Rand) {
			if extra > 0 {
				s.api("DELETE", fmt.Sprint("/proxies/extra-", 1+r.IntN(extra)), nil)
			}
		},
		func(r *rand.Rand) { // one of the servers goes, the other serves
			server := s.good[r.IntN(2)]
			s.api("POST", "/servers/"+choose(r, "drain", "disable"), fields{"kind": "proxies", "proxy": "good", "server": server})
			s.pause(r, time.Second)
			s.api("POST", "/servers/enable", fields{"kind": "proxies", "proxy": "good", "server": server})
		},
		func(r *rand.Rand) { s.api("PATCH", "/ports/second", fields{"address": free(s.t)}) },
		func(r *rand.Rand) { s.api("POST", "/ports/second/reset", fields{}) },
		func(r *rand.Rand) { // a change that waits, and is confirmed or not
			s.api("PATCH", "/settings/upstreams?confirm_within=10s", fields{"idle_timeout": choose(r, "30s", "40s")})
			s.pause(r, time.Second)
			if r.IntN(6) > 0 {
				s.api("POST", choose(r, "/confirm", "/revert"), fields{})
			}
		},
		func(r *rand.Rand) {
			if status, out := s.api("POST", "/backup", fields{}); status == http.StatusOK {
				archive = out
			}
		},
		func(r *rand.Rand) {
			if archive != nil {
				s.api("POST", "/restore", archive)
			}
		},
		func(r *rand.Rand) { // back to what was, which has all proxies of clients
			_, out := s.api("GET", "/revisions?limit=20", nil)
			var all struct{ Items []struct{ Number any } }
			if json.Unmarshal(out, &all) == nil && len(all.Items) > 0 {
				s.api("POST", fmt.Sprintf("/revisions/%v/rollback", all.Items[r.IntN(len(all.Items))].Number), fields{})
			}
		},
		func(r *rand.Rand) { s.api("POST", "/orders/signed.example.com/renew", fields{}) },
		func(r *rand.Rand) {
			for _, path := range []string{"/status", "/config", "/summary", "/series", "/events/history", "/logs/access", "/certificates"} {
				s.api("GET", path, nil)
			}
			s.api("POST", "/explain", fields{"url": "http://good.test/1/5"})
		},
	}
	s.each(1, func(r *rand.Rand) {
		moves[r.IntN(len(moves))](r)
		s.pause(r, 500*time.Millisecond)
	})
}

func choose[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }
