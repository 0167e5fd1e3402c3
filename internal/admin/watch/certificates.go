package watch

import (
	"time"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/event"
)

// stage is how far a certificate is in its life.
type stage int

// An event is sent when a certificate becomes expiring, when a quarter of the time that it
// is expiring is left, and when it has expired.
const (
	fine stage = iota
	expiring
	expiringSoon
	ended
)

// certificate is the last reported state of a certificate.
type certificate struct {
	notAfter time.Time
	stage    stage
	problem  string
	seen     bool // in the look that is under way
}

// stageAt returns how far a life is at a moment.
func stageAt(notBefore, notAfter, now time.Time) stage {
	switch certs.StateAt(notBefore, notAfter, now) {
	case certs.Expired:
		return ended
	case certs.Expiring:
		if notAfter.Sub(now) <= certs.Warning(notBefore, notAfter)/4 {
			return expiringSoon
		}
		return expiring
	}
	return fine
}

// checkCertificates compares the state of the certificates with what was reported last.
func (w *Watch) checkCertificates(now time.Time) {
	own, issued := w.house.Certificates()
	for _, s := range own {
		w.reportCertificate(s.Name, event.Certificate{Certificate: s.Name, Names: s.Names, NotAfter: s.NotAfter, Cause: s.Problem}, s.NotBefore, now)
	}
	for _, r := range issued {
		if !r.NotAfter.IsZero() && !r.Refused() {
			about := event.Certificate{Certificate: r.Name, Names: r.Has, NotAfter: r.NotAfter}
			w.reportCertificate("acme "+r.Name, about, r.NotBefore, now) // acme.issued reports a new one
		}
	}
	for key, c := range w.certificates {
		if !c.seen {
			delete(w.certificates, key)
		}
		c.seen = false
	}
}

// reportCertificate sends the events for a changed certificate. The key distinguishes
// certificates of one name.
func (w *Watch) reportCertificate(key string, about event.Certificate, notBefore, now time.Time) {
	was := w.certificates[key]
	is := &certificate{notAfter: about.NotAfter, problem: about.Cause, seen: true}
	if !is.notAfter.IsZero() {
		is.stage = stageAt(notBefore, is.notAfter, now)
	}
	w.certificates[key] = is
	if is.problem != "" && (was == nil || was.problem != is.problem) {
		w.events.Send(event.CertificateFailed{Certificate: about})
	}
	about.Cause = ""
	renewed := was != nil && !was.notAfter.Equal(is.notAfter)
	if renewed && !is.notAfter.IsZero() && len(key) == len(about.Certificate) {
		w.events.Send(event.CertificateLoaded{Certificate: about})
	}
	if was != nil && !renewed && is.stage <= was.stage {
		return
	}
	switch is.stage {
	case expiring, expiringSoon:
		w.events.Send(event.CertificateExpiring{Certificate: about})
	case ended:
		w.events.Send(event.CertificateExpired{Certificate: about})
	}
}

// reportOrder sends the event for the end of an order, or for the reason that none was
// placed.
func (w *Watch) reportOrder(r *acme.Record) {
	about := event.ACME{Certificate: r.Name, Directory: r.Directory, Names: r.Names, RetryAt: r.NextTry}
	if n := len(r.Timeline); n > 0 {
		about.Directory = r.Timeline[n-1].Directory
	}
	if r.Trouble != nil {
		about.Cause, about.Hint = r.Trouble.Message, r.Trouble.Hint
	}
	if r.Refused() {
		w.events.Send(event.ACMERefused{ACME: about})
		return
	}
	switch r.State {
	case acme.Valid:
		if n := len(r.Timeline); n > 0 && r.Timeline[n-1].Issued && r.Timeline[n-1].Ended.After(w.began) {
			w.events.Send(event.ACMEIssued{ACME: about})
		}
	case acme.Blocked:
		w.events.Send(event.ACMEBlocked{ACME: about})
	case acme.Failed:
		w.events.Send(event.ACMEFailed{ACME: about})
	}
}
