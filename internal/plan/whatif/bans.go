package whatif

import (
	"net/netip"
	"slices"
	"time"

	"headgate/internal/accesslog/recent"
	"headgate/internal/bans"
	"headgate/internal/exchange"
	"headgate/internal/plan"
	"headgate/internal/setting/ipset"
)

// The bounds of a trial of ban rules: a rule counts over minutes or hours, so it is tried on
// more requests than are decided.
const (
	maxTried   = 20_000
	maxTryTime = 500 * time.Millisecond
)

// tryBans tries the ban rules of the next plan on recent requests.
func tryBans(ring *recent.Ring, before, after *plan.Plan) []bans.Trial {
	trials := after.Bans().Try(before.Bans())
	if trials == nil {
		return nil
	}
	ex := &exchange.Exchange{}
	for _, rq := range slices.Backward(newest(ring)) {
		if past(ex, &rq) {
			trials.Add(ex, rq.Time)
		}
	}
	return trials.Results()
}

// newest returns the newest requests, the newest first.
func newest(ring *recent.Ring) []recent.Request {
	end := time.Now().Add(maxTryTime)
	var all []recent.Request
	cursor := recent.Cursor{}
	for len(all) < maxTried && time.Now().Before(end) {
		page := ring.Find(recent.Query{StatusFrom: 1}, cursor, recent.MaxPage)
		all = append(all, page.Requests...)
		if page.Next == (recent.Cursor{}) || len(page.Requests) == 0 {
			break
		}
		cursor = page.Next
	}
	return all
}

// past makes ex a request of the past, as ban rules look at it. It reports whether its client
// is known.
func past(ex *exchange.Exchange, rq *recent.Request) bool {
	client, err := netip.ParseAddr(rq.Client)
	if err != nil {
		return false
	}
	ex.ClientIP, ex.User = ipset.Plain(client), rq.User
	ex.Request.Method, ex.Request.Path = rq.Method, rq.Path
	ex.Response.Status, ex.Reason = rq.Status, reasons[rq.Reason]
	return true
}

// reasons are the reasons by their words.
var reasons = func() map[string]exchange.Reason {
	all := map[string]exchange.Reason{}
	for _, r := range exchange.Reasons() {
		all[r.String()] = r
	}
	return all
}()
