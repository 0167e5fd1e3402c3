package main

import (
	"fmt"
	"io"
	"time"
)

// The results of a page.
const (
	warmStored    = "stored"
	warmAlready   = "already stored"
	warmNotStored = "not stored"
	warmNotServed = "not served"
	warmFailed    = "failed"
)

// warmReport is what became of the pages of sitemaps.
type warmReport struct {
	// Sitemaps and Pages are how many were read and processed.
	Sitemaps int `json:"sitemaps"`
	Pages    int `json:"pages"`
	// Fetched are the requests that were sent, Bytes the size of their response bodies.
	Fetched int   `json:"fetched"`
	Bytes   int64 `json:"bytes"`
	// Stored pages are stored now, Already stored ones were not requested.
	Stored  int `json:"stored"`
	Already int `json:"already"`
	// NotStored pages cannot be stored; NotServed ones are not of headgate or of the proxy.
	NotStored int `json:"not_stored"`
	NotServed int `json:"not_served"`
	// Failed pages have no usable response.
	Failed int `json:"failed"`
	// Evicted are the responses that the caches removed for lack of memory meanwhile.
	Evicted int64   `json:"evicted"`
	Seconds float64 `json:"seconds"`
	// Stopped is why not all pages were processed.
	Stopped string `json:"stopped,omitempty"`
	// Reasons are those of pages that are not stored.
	Reasons []warmReason `json:"reasons"`
}

// warmReason is why pages are not stored.
type warmReason struct {
	Result string `json:"result"`
	Why    string `json:"why"`
	Fix    string `json:"fix,omitempty"`
	Pages  int    `json:"pages"`
	// Example is the first of the pages.
	Example string `json:"example"`
}

// stop notes why no more pages are processed; the first reason counts.
func (w *warmReport) stop(format string, args ...any) {
	if w.Stopped == "" {
		w.Stopped = fmt.Sprintf(format, args...)
	}
}

// add counts a page.
func (w *warmReport) add(result, why, fix, page string) {
	switch result {
	case warmStored:
		w.Stored++
		return
	case warmAlready:
		w.Already++
		return
	case warmNotStored:
		w.NotStored++
	case warmNotServed:
		w.NotServed++
	case warmFailed:
		w.Failed++
	}
	for i := range w.Reasons {
		if r := &w.Reasons[i]; r.Result == result && r.Why == why {
			r.Pages++
			return
		}
	}
	if len(w.Reasons) < maxReasons {
		w.Reasons = append(w.Reasons, warmReason{result, why, fix, 1, page})
	}
}

// print writes the report for people.
func (w *warmReport) print(out io.Writer) error {
	fmt.Fprintf(out, "%d pages of %d sitemaps: %d stored, %d already stored, %d not stored, %d not served, %d failed\n",
		w.Pages, w.Sitemaps, w.Stored, w.Already, w.NotStored, w.NotServed, w.Failed)
	fmt.Fprintf(out, "%d requests, %d bytes of bodies, %s\n", w.Fetched, w.Bytes, time.Duration(w.Seconds*float64(time.Second)).Round(time.Millisecond))
	if w.Evicted > 0 {
		fmt.Fprintf(out, "%d responses were evicted meanwhile: memory_limit of the cache is too small for all pages\n", w.Evicted)
	}
	if w.Stopped != "" {
		fmt.Fprintf(out, "stopped: %s\n", w.Stopped)
	}
	if len(w.Reasons) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	t := newTable(out, "PAGES", "RESULT", "WHY", "FIX", "EXAMPLE")
	for _, r := range w.Reasons {
		t.row(number(r.Pages), r.Result, r.Why, r.Fix, r.Example)
	}
	return t.end()
}
