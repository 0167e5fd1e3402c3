package cache

import (
	"fmt"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// Outcome is how a request would be handled.
type Outcome struct {
	// Use is the value in the access log: hit, stale, miss or pass.
	Use string `json:"use"`
	// Why is an explanation.
	Why string `json:"why"`
	// Status is the status of the stored response, 0 if there is none.
	Status int `json:"status,omitempty"`
	// Age is its age in seconds.
	Age int64 `json:"age,omitempty"`
	// TTL is its remaining lifetime in seconds.
	TTL int64 `json:"ttl,omitempty"`
	// Answered is whether the response is served without a request to a server.
	Answered bool `json:"answered"`
}

// Explain returns how a request would be handled, and changes nothing that is
// stored. It turns the request of ex into the one that a server would get.
func (c *Cache) Explain(ex *exchange.Exchange) Outcome {
	c.chooseLanguage(ex)
	if status := passes(ex); status != "" {
		why := "the method is not for a cache"
		if status != statusMethod {
			why = "it has a body, an upgrade, or a condition that only a server can judge"
		}
		return Outcome{Use: exchange.CachePass.String(), Why: why}
	}
	h := c.newHit(ex)
	if h.cc.has&noStore != 0 {
		return Outcome{Use: exchange.CachePass.String(), Why: "the client says no-store"}
	}
	sh := c.store.shard(h.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, near := sh.findLocked(h)
	told := h.describe(e, near)
	switch u := h.usability(e); {
	case u >= byClient:
		told.Answered = true
	case h.cc.has&onlyIfCached != 0:
		told.Answered = true
		told.Why += "; the client wants nothing else, and gets 504"
	case sh.markedLocked(h.marked(), h.now):
		told.Why += "; a recent response could not be stored, so requests do not wait for this one"
	case ex.Request.Method == "HEAD", e == nil && ex.Request.Header.Has(header.Range):
	default:
		c.reshape(&ex.Request)
		condition(&ex.Request.Header, e)
	}
	return told
}

// describe returns what an entry may be used for, in words.
func (h *hit) describe(e *entry, near bool) Outcome {
	t := Outcome{Use: exchange.CacheMiss.String()}
	if e == nil {
		t.Why = "nothing is stored for it"
		if near {
			t.Why = "only other variants are stored for it"
		}
		return t
	}
	t.Status, t.Age = e.status, e.ageAt(h.now)/second
	t.TTL = (e.life - e.ageAt(h.now)) / second
	switch h.usability(e) {
	case fresh:
		t.Use, t.Why = exchange.CacheHit.String(), fmt.Sprintf("stored, and fresh for %d seconds more", t.TTL)
	case byClient:
		t.Use, t.Why = exchange.CacheHit.String(), "stored, and stale, which the client accepts"
	case refreshing:
		t.Use, t.Why = exchange.CacheStale.String(), "stored, and stale; it is fetched anew in the background"
	case none:
		t.Why = "what is stored is not for requests with cookies"
	default:
		t.Why = "stored, and has to be validated"
	}
	return t
}

// Text returns it in one line.
func (t *Outcome) Text() string { return t.Use + ": " + strings.TrimSpace(t.Why) }
