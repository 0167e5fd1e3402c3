package ipfilter

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
)

// logPause is the time between two lines of an observer in the application's log.
const logPause = 10 * time.Second

// observer lets in the clients that a filter would reject, and logs them.
type observer struct {
	// check and admits are the filter of requests or of connections.
	check  func(*exchange.Exchange) *exchange.Answer
	admits func(netip.Addr) *exchange.Answer
	log    *slog.Logger // nil logs nothing
	scope  string
	// rejected counts what the filter would have rejected since the last line.
	rejected atomic.Int64
	logged   clock.Spacing
}

// request rejects no request: the access log has the cause.
func (o *observer) request(ex *exchange.Exchange) *exchange.Answer {
	answer := o.check(ex)
	if answer == nil {
		return nil
	}
	text := "observe mode: ip_filter would reject this request: " + answer.Cause
	if ex.Rehearsal {
		ex.Note(text)
		return nil
	}
	ex.Cause = text
	o.count(ex.ClientIP, answer.Cause)
	return nil
}

// admit rejects no connection.
func (o *observer) admit(client netip.Addr) *exchange.Answer {
	if answer := o.admits(client); answer != nil {
		o.count(client, answer.Cause)
	}
	return nil
}

// count counts a client that would have been rejected. It logs the number now and then, with
// the latest client.
func (o *observer) count(client netip.Addr, cause string) {
	o.rejected.Add(1)
	if o.log == nil || !o.logged.Due(clock.Now(), logPause) {
		return
	}
	o.log.Warn("observe mode: ip_filter would reject clients", "filter", o.scope, "count", o.rejected.Swap(0), "client_ip", client.String(), "cause", cause)
}
