package control

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"headgate/internal/accesslog"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/schema"
)

// records are the access logs as a participant.
type records struct {
	log     *slog.Logger
	current atomic.Pointer[recordSet]

	mu struct {
		sync.Mutex
		retiring map[*accesslog.Log]struct{}
		lost     uint64 // records that closed logs have lost
	}
	retired sync.WaitGroup // of retiring
}

// recordSet are the access logs of a configuration: the common one, and those that
// proxies have for themselves. It is immutable.
type recordSet struct {
	form *recordForm
	logs map[string]*record // by the paths that they are opened by
}

// recordForm is what all access logs have in common. Sets with the same settings have
// the same one.
type recordForm struct {
	common   string // the path of the common log
	settings config.AccessLog
	withheld map[string]bool // paths that this machine does not allow
}

// path returns where the log at a path is; "" is the common one.
func (f *recordForm) path(path string) string {
	if path == "" || f.withheld[path] {
		return f.common
	}
	return path
}

// formOf returns what the access logs of a configuration have in common.
func formOf(cfg *config.Config) *recordForm {
	f := &recordForm{common: cmp.Or(cfg.LogHere(cfg.AccessLog.File()), accesslog.Stdout), settings: cfg.AccessLog}
	f.settings.Enabled, f.settings.Recent = true, config.Recent{} // no file is opened for them
	f.settings.RedactQuery = nil                                  // it acts before the log
	if w := cfg.WithheldObjects(); w != nil {
		f.withheld = w.Logs
	}
	return f
}

// record is an access log. A nil record is none.
type record struct {
	log *accesslog.Log // nil before Prepare
}

// queueOfProxy is how many buffers of a proxy's own log may wait for the disk: there may
// be many such logs.
const queueOfProxy = 8

// to returns the function that logs an exchange to the log at path, once that is open; ""
// is the common one. It is nil if there is no such log.
func (s *recordSet) to(path string) func(*exchange.Exchange) {
	r := s.logs[s.form.path(path)]
	if r == nil {
		return nil
	}
	return func(ex *exchange.Exchange) { r.log.Record(ex) }
}

func (s *recordSet) close() {
	if s == nil {
		return
	}
	for _, r := range s.logs {
		if r.log != nil {
			r.log.Close()
		}
	}
}

// next returns the logs of a configuration: those in use where the settings are the
// same, and new ones that have to be prepared.
func (r *records) next(cfg *config.Config) *recordSet {
	set, now := &recordSet{form: formOf(cfg), logs: map[string]*record{}}, r.current.Load()
	same := now != nil && reflect.DeepEqual(now.form, set.form)
	if same {
		set.form = now.form
	}
	for path := range logPlaces(cfg, schema.Place{}) {
		if same && now.logs[path] != nil {
			set.logs[path] = now.logs[path]
		} else {
			set.logs[path] = &record{}
		}
	}
	return set
}

// logPlaces returns the paths of all access logs that requests of a configuration can
// come into, each with the place of the first setting that names it.
func logPlaces(cfg *config.Config, root schema.Place) map[string]schema.Place {
	places := map[string]schema.Place{}
	form := formOf(cfg)
	common := form.common
	if cfg.AccessLog.Enabled {
		places[common] = root.Field("access_log").Field("path")
	}
	for o := range cfg.OwnLogs(root) {
		if !o.Active || !o.Log.Enabled {
			continue
		}
		path, at := form.path(o.Log.File()), o.At.Field("access_log").Field("path")
		if path == common {
			path, at = common, root.Field("access_log").Field("path")
		}
		if _, there := places[path]; !there {
			places[path] = at
		}
	}
	return places
}

// Prepare opens the files of the logs that are not in use already.
func (r *records) Prepare(next *Next) (Change, error) {
	ch := recordChange{r, next.records}
	places := logPlaces(next.Config, next.Report.Root())
	for _, path := range slices.Sorted(maps.Keys(next.records.logs)) {
		one := next.records.logs[path]
		if one.log != nil {
			continue
		}
		var err error
		if one.log, err = accesslog.Open(next.records.form.config(path), r.log); err != nil {
			ch.Cancel()
			places[path].Problem(err.Error(), "name a file that can be written to, or stdout")
			return nil, &Refused{Problems: next.Report.Problems()}
		}
	}
	return ch, nil
}

// config returns what the log at path is opened by.
func (f *recordForm) config(path string) accesslog.Config {
	s := &f.settings
	c := accesslog.Config{
		Format: string(s.Format), Path: path, Headers: s.RequestHeaders, ResponseHeaders: s.ResponseHeaders, Omit: s.Omit, Sample: s.Sample,
	}
	if c.Sample == 0 {
		c.Sample = -1
	}
	if path != f.common {
		c.Queue = queueOfProxy
	}
	return c
}

// recordChange are the logs after a change.
type recordChange struct {
	records *records
	next    *recordSet
}

// Commit ends the logs that are not in use any more. Exchanges that began before may
// still write to them.
func (ch recordChange) Commit() {
	old := ch.records.current.Swap(ch.next)
	for _, one := range ch.next.without(old) {
		ch.records.retire(one.log)
	}
}

// retire ends a log in the background: who reads its pipe may be slow, and a change must
// not wait for them.
func (r *records) retire(log *accesslog.Log) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.retiring == nil {
		r.mu.retiring = map[*accesslog.Log]struct{}{}
	}
	r.mu.retiring[log] = struct{}{}
	r.retired.Go(func() {
		log.Retire()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.mu.retiring, log)
		r.mu.lost += log.Lost()
	})
}

// close ends all logs, and waits for those that end already.
func (r *records) close() {
	r.current.Load().close()
	r.retired.Wait()
}

// Cancel closes the new logs.
func (ch recordChange) Cancel() {
	for _, one := range ch.records.current.Load().without(ch.next) {
		if one.log != nil {
			one.log.Close()
			one.log = nil
		}
	}
}

// without returns the logs of other that are not in s. Both may be nil.
func (s *recordSet) without(other *recordSet) []*record {
	var out []*record
	if other == nil {
		return nil
	}
	for path, one := range other.logs {
		if s == nil || s.logs[path] != one {
			out = append(out, one)
		}
	}
	return out
}

// passages returns recordSet.to of the logs of a configuration for TCP and UDP proxies.
func (r *records) passages(set *recordSet) func(path string) func(*exchange.Session) {
	return func(path string) func(*exchange.Session) { return r.sessionLogger(set, path) }
}

// sessionLogger returns the function that logs connections of a TCP proxy and sessions of a
// UDP proxy to the log at path. A connection may end long after it began: its line goes to
// the log that is at the path then. A proxy's own log that was removed still gets the last
// lines, the common one does not.
func (r *records) sessionLogger(set *recordSet, path string) func(*exchange.Session) {
	own := set.logs[set.form.path(path)]
	if own == nil {
		return nil
	}
	return func(p *exchange.Session) {
		one := own
		if now := r.current.Load(); now != nil {
			switch here := now.logs[now.form.path(path)]; {
			case here != nil:
				one = here
			case path == "":
				return
			}
		}
		one.log.RecordSession(p)
	}
}

// reopen opens the files again, for log rotation.
func (r *records) reopen() error {
	now := r.current.Load()
	if now == nil {
		return nil
	}
	var failed []error
	for _, path := range slices.Sorted(maps.Keys(now.logs)) {
		failed = append(failed, now.logs[path].log.Reopen())
	}
	return errors.Join(failed...)
}

// dropped returns how many records were lost.
func (r *records) dropped() uint64 {
	r.mu.Lock()
	lost := r.mu.lost
	for log := range r.mu.retiring {
		lost += log.Lost()
	}
	r.mu.Unlock()
	if now := r.current.Load(); now != nil {
		for _, one := range now.logs {
			lost += one.log.Lost()
		}
	}
	return lost
}
