package acme

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// orderWindow is the time within which authorities count the orders of an account.
const orderWindow = 3 * time.Hour

// The bounds of how long an authority that wants no more requests is left alone.
const (
	shortestLimit = time.Minute
	usualLimit    = time.Hour
	longestLimit  = 24 * time.Hour
)

// retryAfter returns when an authority wants to be asked again (RFC 9110, section
// 10.2.3), within our own bounds.
func retryAfter(text string, now time.Time) time.Time {
	wait := usualLimit
	if seconds, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(max(seconds, 0), int(longestLimit/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return now.Add(min(max(wait, shortestLimit), longestLimit))
}

// limit notes that a directory wants no more orders for a while.
func (m *Manager) limit(url string, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.limited[url] = until
}

// limitedUntil returns until when a directory has limited new orders, the zero time if it
// has not.
func (m *Manager) limitedUntil(url string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	until := m.mu.limited[url]
	if !until.After(m.now()) {
		delete(m.mu.limited, url)
		return time.Time{}
	}
	return until
}

// mayPlace returns why no order may be placed at a directory now, nil if one may, which it
// then counts. Thousands of names that are ordered at once wait here instead of being
// rejected one by one.
func (m *Manager) mayPlace(name, url string) *Trouble {
	now := m.now()
	if until := m.limitedUntil(url); !until.IsZero() {
		return &Trouble{Code: "rate_limited", Message: "the authority's rate limit is reached, as its response to another order said", Hint: "headgate continues automatically; until then a directory in fallbacks can help", theirs: true, after: until.Sub(now)}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	most := directoryOf(name).limits.orders
	if most == 0 || directoryOf(name).url != url {
		return nil
	}
	placed := slices.DeleteFunc(m.mu.placed[name], func(at time.Time) bool { return now.Sub(at).Abs() > orderWindow })
	m.mu.placed[name] = placed
	if len(placed) >= most {
		wait := placed[len(placed)-most].Add(orderWindow).Sub(now)
		return &Trouble{Code: "budget_orders", Message: fmt.Sprintf("%d orders were placed within three hours, and the authority allows no more", len(placed)), Hint: "headgate continues automatically; a wildcard needs one order only", blocked: true, after: max(wait, time.Second)}
	}
	m.notePlacedLocked(name, now)
	return nil
}

// notePlacedLocked counts an order at a directory whose orders are limited.
func (m *Manager) notePlacedLocked(name string, at time.Time) {
	most := directoryOf(name).limits.orders
	if most == 0 || m.now().Sub(at).Abs() > orderWindow {
		return
	}
	placed := append(m.mu.placed[name], at)
	slices.SortFunc(placed, time.Time.Compare)
	m.mu.placed[name] = placed[max(len(placed)-most, 0):]
}
