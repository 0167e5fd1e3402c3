package acme

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/store"
)

// limited makes an authority refuse orders for a day, and counts those that it refused.
func (a *authority) limited() *atomic.Int32 {
	var refused atomic.Int32
	a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "order-plz") {
			return false
		}
		refused.Add(1)
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many new orders"}`)
		return true
	}
	return &refused
}

func isLimited(r *Record) bool {
	return r.Trouble != nil && r.Trouble.Code == "rate_limited" && !r.NextTry.IsZero()
}

// TestALongRateLimitLeadsToTheNextDirectory holds that nobody waits for a day where
// another directory is named, and that each is asked in vain once only.
func TestALongRateLimitLeadsToTheNextDirectory(t *testing.T) {
	limited, good := start(t, acmetest.Settings{}), start(t, acmetest.Settings{})
	refused, refusedToo := limited.limited(), good.limited()
	meddle := good.Meddle
	var open atomic.Bool
	good.Meddle = func(w http.ResponseWriter, r *http.Request) bool { return !open.Load() && meddle(w, r) }
	u := good.manager(newStore())
	e := good.entry()
	e.CAFile += ".both"
	concat(t, e.CAFile, limited.CAFile, good.CAFile)
	e.Directory, e.Fallbacks = limited.Directory, []string{good.Directory}
	u.setWanted(e, []string{"shop.example.com"})
	r := u.until("shop.example.com", "limited by both", func(r *Record) bool { return isLimited(r) && time.Until(r.NextTry) > 23*time.Hour })
	if refused.Load() != 1 || refusedToo.Load() != 1 || len(r.Timeline) != 2 {
		t.Errorf("asked %d and %d times: %+v", refused.Load(), refusedToo.Load(), r.Timeline)
	}
	open.Store(true)
	u.Manager.mu.Lock()
	delete(u.Manager.mu.limited, good.Directory)
	u.Manager.mu.Unlock()
	if err := u.Order(r.Name); err != nil {
		t.Fatal(err)
	}
	if r := u.state("shop.example.com", Valid); r.Directory != good.Directory || refused.Load() != 1 {
		t.Errorf("issued by %s, and the other was asked %d times", r.Directory, refused.Load())
	}
}

// TestAStartAgainKeepsARateLimit holds that a process which is started again leaves an
// authority alone for as long as that has said.
func TestAStartAgainKeepsARateLimit(t *testing.T) {
	a := start(t, acmetest.Settings{})
	refused := a.limited()
	s := newStore()
	for range 3 {
		u := a.manager(s)
		u.setWanted(a.entry(), []string{"shop.example.com"})
		r := u.until("shop.example.com", "limited", isLimited)
		if time.Until(r.NextTry) < 23*time.Hour {
			t.Errorf("tried again in %v", time.Until(r.NextTry))
		}
		runtime.Gosched()
		u.Close()
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("the authority had to refuse %d orders, want 1", n)
	}
}

// TestAnOrderThatIsAskedForIsOneInEarnest holds that it is not over when it was tried out.
func TestAnOrderThatIsAskedForIsOneInEarnest(t *testing.T) {
	real, staging := start(t, acmetest.Settings{}), start(t, acmetest.Settings{})
	directories["test"] = directory{url: real.Directory, staging: staging.Directory}
	t.Cleanup(func() { delete(directories, "test") })
	u := real.manager(newStore())
	e := real.entry()
	e.CAFile += ".both"
	concat(t, e.CAFile, real.CAFile, staging.CAFile)
	e.Directory, e.Challenge = "test", HTTP01
	issued := func(n int) func(*Record) bool {
		return func(r *Record) bool {
			for _, a := range r.Timeline {
				if a.Issued && !a.Staging {
					n--
				}
			}
			return n <= 0 && r.State == Valid
		}
	}
	order := func() {
		t.Helper()
		if err := u.Order("shop.example.com"); err != nil {
			t.Fatal(err)
		}
	}
	setAnswers := func(answers *Answers) {
		real.answers.Store(answers)
		staging.answers.Store(answers)
	}
	setAnswers(u.Answers())
	u.setWanted(e, []string{"shop.example.com"})
	u.until("shop.example.com", "issued", issued(1))
	setAnswers(&Answers{}) // somebody else answers
	order()
	u.until("shop.example.com", "left as it is after a failure", func(r *Record) bool { return len(r.Timeline) > 1 && r.State == Valid && r.Rehearse })
	setAnswers(u.Answers())
	order()
	u.until("shop.example.com", "issued again", func(r *Record) bool { return issued(2)(r) })
}

// TestAnswersThatWereLeftEnd holds that what a crash has left is not answered for ever.
func TestAnswersThatWereLeftEnd(t *testing.T) {
	s := newStore()
	left := store.Entry{Key: store.PrefixChallenge + "left", Value: []byte("answer"), TTL: answerLife}
	if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{left}}); err != nil {
		t.Fatal(err)
	}
	m := New(Options{Store: s})
	if !m.Load() {
		t.Fatal("not loaded")
	}
	m.mu.Lock()
	m.sweepLocked(time.Now().Add(answerLife - time.Minute))
	m.mu.Unlock()
	if _, ok := m.Answers().HTTP("left"); !ok {
		t.Error("an answer is gone before its end")
	}
	m.mu.Lock()
	m.sweepLocked(time.Now().Add(3 * answerLife))
	m.mu.Unlock()
	if m.Answers().Pending() || len(m.mu.found) > 0 {
		t.Error("answers stay")
	}
}

// TestANewCertificateIsAskedAboutSoon holds that the authority is asked when to renew one
// that it has just issued: it may have to take it back long before its usual renewal.
func TestANewCertificateIsAskedAboutSoon(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	u.setWanted(a.entry(), []string{"shop.example.com"})
	r := u.until("shop.example.com", "at rest", func(r *Record) bool { return r.State == Valid && !r.NextTry.IsZero() })
	if r.Renewal == nil || time.Until(r.NextTry) > latestAsk {
		t.Errorf("looked at again in %v: %+v", time.Until(r.NextTry), r.Renewal)
	}
}
