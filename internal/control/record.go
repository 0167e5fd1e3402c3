package control

import (
	"headgate/internal/accesslog"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/plan"
	"headgate/internal/schema"
)

// record is an open access log with the settings it was opened by. A nil record
// is none.
type record struct {
	settings config.AccessLog
	log      *accesslog.Log
}

// fn returns what is told of each exchange, nil for none.
func (r *record) fn() func(*exchange.Exchange) {
	if r == nil {
		return nil
	}
	return r.log.Record
}

// recordPassage tells the access log of the moment about a connection that has
// ended, which may have begun when there was another.
func (c *Control) recordPassage(p *exchange.Passage) {
	if r := c.record.Load(); r != nil {
		r.log.RecordPassage(p)
	}
}

func (r *record) close() {
	if r != nil {
		r.log.Close()
	}
}

// openRecord opens the access log of a change, or takes the open one on if its
// settings are the same.
func (c *Control) openRecord(ch *change, report *schema.Report) error {
	settings := ch.config.AccessLog
	settings.Enabled = true
	switch old := c.record.Load(); {
	case !plan.Logs(ch.config):
		return nil
	case old != nil && old.settings == settings:
		ch.record = old
		return nil
	}
	log, err := accesslog.Open(accesslog.Config{Format: string(settings.Format), Path: settings.Path}, c.log)
	if err != nil {
		report.Root().Field("access_log").Field("path").Problem(err.Error(), "name a file that can be written to, or stdout")
		return &Refused{Problems: report.Problems()}
	}
	ch.record = &record{settings: settings, log: log}
	return nil
}

// retireRecord ends a log that a change has replaced. Exchanges that began
// before the change may still write to it.
func (c *Control) retireRecord(old *record) {
	if old == nil {
		return
	}
	old.log.Retire()
	c.retired.Add(old.log.Lost())
}

// lostRecords returns how many records of the access log were lost.
func (c *Control) lostRecords() uint64 {
	lost := c.retired.Load()
	if r := c.record.Load(); r != nil {
		lost += r.log.Lost()
	}
	return lost
}
