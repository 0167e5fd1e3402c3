package acme

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/store"
)

// answerJunk are answers that no authority should give.
var answerJunk = map[string]func(w http.ResponseWriter){
	"html": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<h1>It works!</h1>")
	},
	"half a document": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"newNonce": "https://`)
	},
	"an endless body": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		for block := strings.Repeat(" ", 64<<10); ; {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	},
	"a gigabyte": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1073741824")
		block := make([]byte, 64<<10)
		for range 1 << 14 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	},
	"502 without a word": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
	"404 without a word": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
	"a cut connection":   func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
}

// TestJunkAtAnyStepIsToldAndGotOver lets the authority answer junk at one step, until the
// state says so, and then rightly again.
func TestJunkAtAnyStepIsToldAndGotOver(t *testing.T) {
	for _, step := range []string{"/dir", "/sign-me-up", "/order-plz", "/authZ/", "/chalZ/", "/finalize-order/", "/certZ/"} {
		a := start(t, acmetest.Settings{})
		var junk atomic.Value // func(http.ResponseWriter), nil for none
		junk.Store((func(http.ResponseWriter))(nil))
		a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
			if answer := junk.Load().(func(http.ResponseWriter)); answer != nil && strings.HasPrefix(r.URL.Path, step) {
				answer(w)
				return true
			}
			return false
		}
		for what, answer := range answerJunk {
			t.Run(strings.Trim(step, "/")+" gives "+what, func(t *testing.T) {
				a.t = t
				junk.Store(answer)
				u := a.manager(newStore())
				u.setWanted(a.entry(), []string{"shop.example.com"})
				r := u.until("shop.example.com", "failed, or valid all the same", func(r *Record) bool { return r.State == Failed || r.State == Valid })
				if r.State == Failed && (r.Trouble == nil || r.Trouble.Code == "" || r.Trouble.Message == "" || r.Trouble.Hint == "" || strings.Contains(r.Trouble.Message, "io.Writer") || r.NextTry.IsZero() || r.Since.IsZero()) {
					t.Errorf("got the trouble %+v, the next try at %v", r.Trouble, r.NextTry)
				}
				junk.Store((func(http.ResponseWriter))(nil))
				r = u.state("shop.example.com", Valid)
				if n := len(r.Timeline); n > 8 {
					t.Errorf("%d orders were placed", n)
				}
				u.Close()
			})
		}
	}
}

// TestWrongNoncesForEverAreTold refuses every request as repeated.
func TestWrongNoncesForEverAreTold(t *testing.T) {
	a := start(t, acmetest.Settings{})
	var refuse atomic.Bool
	var asked atomic.Int32
	refuse.Store(true)
	a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !refuse.Load() {
			return false
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Replay-Nonce", fmt.Sprintf("nonce%d", asked.Load()))
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"type":"urn:ietf:params:acme:error:badNonce","detail":"JWS has an invalid anti-replay nonce"}`)
		return true
	}
	u := a.patient(newStore())
	u.setWanted(a.entry(), []string{"shop.example.com"})
	r := u.state("shop.example.com", Failed)
	if r.Trouble.Code != "bad_nonce" || r.Trouble.Problem == nil || r.NextTry.IsZero() {
		t.Errorf("got %+v, the next try at %v", r.Trouble, r.NextTry)
	}
	if n := asked.Load(); n > 20 {
		t.Errorf("it was asked %d times for one try", n)
	}
	refuse.Store(false)
	if err := u.Order("shop.example.com"); err != nil {
		t.Fatal(err)
	}
	u.state("shop.example.com", Valid)
}

// TestAnOrderAsSoonAsOneHasFailed asks for another in the moment in which the failure is
// shown: the one that has failed is not under way any more for whoever sees that.
func TestAnOrderAsSoonAsOneHasFailed(t *testing.T) {
	a := start(t, acmetest.Settings{})
	var refused atomic.Bool
	a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "order-plz") || refused.Swap(true) {
			return false
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"type":"urn:ietf:params:acme:error:rejectedIdentifier","detail":"not today"}`)
		return true
	}
	var u *under
	a.tell = func(r *Record) {
		if r.State == Failed || r.State == Blocked {
			if err := u.Order("shop.example.com"); err != nil {
				t.Error(err)
			}
		}
	}
	u = a.patient(newStore())
	u.setWanted(a.entry(), []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	if !refused.Load() {
		t.Error("no order was refused")
	}
}

// TestAnAuthorityThatIsDeadOrSlowIsTold asks one that nobody serves, and one that takes
// longer than a request may.
func TestAnAuthorityThatIsDeadOrSlowIsTold(t *testing.T) {
	a := start(t, acmetest.Settings{})
	e := a.entry()
	e.Directory = "https://127.0.0.1:1/dir"
	u := a.manager(newStore())
	u.setWanted(e, []string{"shop.example.com"})
	r := u.state("shop.example.com", Failed)
	if r.Trouble.Code != "authority_away" || r.NextTry.IsZero() || !strings.Contains(r.Trouble.Message, "127.0.0.1:1") {
		t.Errorf("got %+v, the next try at %v", r.Trouble, r.NextTry)
	}
	e = a.entry()
	e.Directory = "https://169.254.169.254/dir"
	u = a.manager(newStore())
	u.setWanted(e, []string{"shop.example.com"})
	if r := u.state("shop.example.com", Failed); r.Trouble.Code != "authority_refused" || !strings.Contains(r.Trouble.Message, "169.254.169.254") {
		t.Errorf("at an address of the link: got %+v", r.Trouble)
	}
	slow := make(chan struct{})
	var once atomic.Bool
	a.Meddle = func(http.ResponseWriter, *http.Request) bool {
		if once.CompareAndSwap(false, true) {
			<-slow
		}
		return false
	}
	t.Cleanup(func() { close(slow) })
	v := a.managerAt(newStore(), pace{first: time.Hour, most: time.Hour, look: quickPace.look, request: 2 * time.Second})
	v.setWanted(a.entry(), []string{"slow.example.com"})
	r = v.state("slow.example.com", Failed)
	if r.Trouble.Code != "authority_slow" || r.NextTry.IsZero() {
		t.Errorf("got %+v, the next try at %v", r.Trouble, r.NextTry)
	}
}

// TestADirectoryThatMovesIsReadAgain moves what orders are placed at between two orders,
// and answers at the old place with a document and without.
func TestADirectoryThatMovesIsReadAgain(t *testing.T) {
	for what, gone := range map[string]func(http.ResponseWriter){
		"404":            func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"404, malformed": problemJunk(http.StatusNotFound, "malformed"),
		"410":            problemJunk(http.StatusGone, "malformed"),
		"html":           answerJunk["html"],
	} {
		t.Run(what, func(t *testing.T) {
			a := start(t, acmetest.Settings{})
			var moved atomic.Bool
			a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
				if !moved.Load() {
					return false
				}
				base := "https://" + r.Host
				switch rest, ok := strings.CutPrefix(r.URL.Path, "/v2"); {
				case r.URL.Path == "/dir":
					json.NewEncoder(w).Encode(map[string]any{"newNonce": base + "/v2/nonce-plz", "newAccount": base + "/v2/sign-me-up", "newOrder": base + "/v2/order-plz", "revokeCert": base + "/revoke-cert", "keyChange": base + "/rollover-account-key"})
					return true
				case ok:
					r.URL.Path = rest
				case r.URL.Path == "/order-plz" || r.URL.Path == "/nonce-plz":
					gone(w)
					return true
				}
				return false
			}
			u := a.manager(newStore())
			u.setWanted(a.entry(), []string{"a.example.com"})
			u.state("a.example.com", Valid)
			moved.Store(true)
			u.setWanted(a.entry(), []string{"a.example.com"}, []string{"b.example.com"})
			u.state("b.example.com", Valid)
		})
	}
}

func problemJunk(status int, kind string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"urn:ietf:params:acme:error:%s","detail":"no such resource","status":%d}`, kind, status)
	}
}

// TestRedirectsAreFollowedWithinHTTPSOnly sends those who ask for the directory elsewhere.
func TestRedirectsAreFollowedWithinHTTPSOnly(t *testing.T) {
	a := start(t, acmetest.Settings{})
	var to atomic.Value
	to.Store("http://127.0.0.1:1/dir")
	a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/old" {
			return false
		}
		http.Redirect(w, r, to.Load().(string), http.StatusMovedPermanently)
		return true
	}
	e := a.entry()
	e.Directory = strings.TrimSuffix(a.Directory, "/dir") + "/old"
	u := a.manager(newStore())
	u.setWanted(e, []string{"shop.example.com"})
	r := u.state("shop.example.com", Failed)
	if !strings.Contains(r.Trouble.Message, "not https") || r.NextTry.IsZero() {
		t.Errorf("got %+v", r.Trouble)
	}
	to.Store(a.Directory + "x/../old") // for ever
	u.until("shop.example.com", "failed by a loop", func(r *Record) bool {
		return r.State == Failed && strings.Contains(r.Trouble.Message, "redirects")
	})
	to.Store(a.Directory)
	u.state("shop.example.com", Valid)
}

// TestAStoreThatIsFullAtAnyStepCostsNoSecondOrder refuses all commits from one of them on,
// until the state says so, and takes them again then: in the same process, which has not
// forgotten what the store could not keep.
func TestAStoreThatIsFullAtAnyStepCostsNoSecondOrder(t *testing.T) {
	for n := 1; ; n++ {
		full := false
		t.Run(fmt.Sprint("from commit ", n), func(t *testing.T) {
			a := start(t, acmetest.Settings{})
			s := newStore()
			seen, again := 0, false
			s.before = func(c store.Change) error {
				if seen++; seen < n || again || len(c.Put) == 0 {
					return nil
				}
				full = true
				return fmt.Errorf("no space left on device: %w", store.ErrUnavailable)
			}
			u := a.manager(s)
			u.setWanted(a.entry(), []string{"shop.example.com"})
			r := u.until("shop.example.com", "stopped by the store, or valid", func(r *Record) bool {
				return r.Trouble != nil && r.Trouble.Code == "store" || r.State == Valid && !r.NextTry.IsZero()
			})
			if r.Trouble != nil && (!strings.Contains(r.Trouble.Message, "no space left") || r.NextTry.IsZero()) {
				t.Errorf("got %+v, the next try at %v", r.Trouble, r.NextTry)
			}
			s.mu.Lock()
			again = true
			s.mu.Unlock()
			u.until("shop.example.com", "valid and kept", func(r *Record) bool {
				if r.State == Failed || r.State == Blocked {
					u.Order(r.Name) // refused while it is under way
				}
				return r.State == Valid && s.has(store.PrefixCertificate+"shop.example.com")
			})
			u.certificate("shop.example.com")
			if n := a.Orders(); n != 1 {
				t.Errorf("%d orders were placed, want 1", n)
			}
		})
		if !full || t.Failed() {
			if n < 6 {
				t.Errorf("an order has only %d commits", n-1)
			}
			return
		}
	}
}

// TestACertificateIsKeptWithoutTheTroubleOfTriesBefore looks at the commit that brings it:
// the store may refuse the next one.
func TestACertificateIsKeptWithoutTheTroubleOfTriesBefore(t *testing.T) {
	a := start(t, acmetest.Settings{})
	var failed atomic.Bool
	a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
		if !failed.CompareAndSwap(false, true) {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	s := newStore()
	var issued *Record
	s.after = func(c store.Change) {
		if i := slices.IndexFunc(c.Put, func(e store.Entry) bool { return strings.HasPrefix(e.Key, store.PrefixCertificate) }); i < 0 {
			return
		}
		for _, e := range c.Put {
			if strings.HasPrefix(e.Key, store.PrefixOrder) {
				issued = &Record{}
				if err := json.Unmarshal(e.Value, issued); err != nil {
					t.Error(err)
				}
			}
		}
	}
	u := a.manager(s)
	u.setWanted(a.entry(), []string{"shop.example.com"})
	if r := u.state("shop.example.com", Failed); r.Failures == 0 {
		t.Errorf("the first try is not counted: %+v", r)
	}
	u.state("shop.example.com", Valid)
	s.mu.Lock()
	defer s.mu.Unlock()
	if issued == nil || issued.State != Valid || issued.Trouble != nil || issued.Failures != 0 || !issued.NextTry.IsZero() {
		t.Errorf("kept with the certificate: %+v", issued)
	}
}
