package control

import (
	"log/slog"
	"reflect"
	"sync/atomic"

	"headgate/internal/accesslog"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/plan"
)

// records is the access log as a participant.
type records struct {
	log     *slog.Logger
	current atomic.Pointer[record]
	lost    atomic.Uint64 // records that closed logs have lost
}

// record is an access log with the settings it is opened by. A nil record is none.
type record struct {
	settings config.AccessLog
	log      *accesslog.Log // nil before Prepare
}

// fn returns what is told of each exchange once the log is open, nil for none.
func (r *record) fn() func(*exchange.Exchange) {
	if r == nil {
		return nil
	}
	return func(ex *exchange.Exchange) { r.log.Record(ex) }
}

func (r *record) close() {
	if r != nil && r.log != nil {
		r.log.Close()
	}
}

// next returns the record of a configuration: the one in use if its settings are the
// same, else one that has to be prepared.
func (r *records) next(cfg *config.Config) *record {
	settings := cfg.AccessLog
	settings.Enabled, settings.Recent = true, config.Recent{} // no file is opened for them
	settings.RedactQuery = nil                                // it acts before the log
	switch now := r.current.Load(); {
	case !plan.Logs(cfg):
		return nil
	case now != nil && reflect.DeepEqual(now.settings, settings):
		return now
	}
	return &record{settings: settings}
}

// Prepare opens the file of the log, unless it is in use already.
func (r *records) Prepare(next *Next) (Change, error) {
	ch := recordChange{r, next.record}
	if next.record == nil || next.record.log != nil {
		return ch, nil
	}
	s := &next.record.settings
	sample := s.Sample
	if sample == 0 {
		sample = -1
	}
	log, err := accesslog.Open(accesslog.Config{
		Format: string(s.Format), Path: s.Path, Headers: s.RequestHeaders, Omit: s.Omit, Sample: sample,
	}, r.log)
	if err != nil {
		next.Report.Root().Field("access_log").Field("path").Problem(err.Error(), "name a file that can be written to, or stdout")
		return nil, &Refused{Problems: next.Report.Problems()}
	}
	next.record.log = log
	return ch, nil
}

// recordChange is the log after a change.
type recordChange struct {
	records *records
	next    *record
}

// Commit ends the old log. Exchanges that began before may still write to it.
func (ch recordChange) Commit() {
	if old := ch.records.current.Swap(ch.next); old != nil && old != ch.next {
		old.log.Retire()
		ch.records.lost.Add(old.log.Lost())
	}
}

// Cancel closes the new log.
func (ch recordChange) Cancel() {
	if ch.next != ch.records.current.Load() {
		ch.next.close()
	}
}

// passage tells the access log of the moment about a connection that has ended,
// which may have begun when there was another.
func (r *records) passage(p *exchange.Passage) {
	if now := r.current.Load(); now != nil {
		now.log.RecordPassage(p)
	}
}

// reopen opens the file again, for log rotation.
func (r *records) reopen() error {
	if now := r.current.Load(); now != nil {
		return now.log.Reopen()
	}
	return nil
}

// dropped returns how many records were lost.
func (r *records) dropped() uint64 {
	lost := r.lost.Load()
	if now := r.current.Load(); now != nil {
		lost += now.log.Lost()
	}
	return lost
}
