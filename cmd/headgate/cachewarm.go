package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/exchange"
	"headgate/internal/feature/cache"
	"headgate/internal/setting/unit"
	"headgate/internal/sitemap"
)

// The limits of warming, beside those of flags and of each sitemap.
const (
	maxSitemaps      = 500
	maxSitemapDepth  = 3  // indexes in indexes; the protocol has one
	maxWarmFailures  = 10 // in a row, then the servers are left alone
	maxReasons       = 100
	maxWarmRedirects = 3 // of a sitemap
	warmTimeout      = 30 * time.Second
)

// warmHeaders are sent with each request: what browsers send, so that the variant that is
// stored is theirs.
var warmHeaders = [][2]string{
	{"User-Agent", "headgate-warm"},
	{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
	{"Accept-Encoding", "gzip, deflate, br, zstd"},
}

func newCacheWarm() *cobra.Command {
	cmd := &cobra.Command{
		Use: "warm --sitemap URL|FILE", Short: "Request the pages of a sitemap so that they are cached", Args: noArguments,
		Long: `warm requests the pages of a sitemap from the ports of headgate, one after the other, so that
the responses are stored before visitors need them. Then it reports how many pages were stored,
how many already were, and why others cannot be: the reasons are those of "headgate explain
--cache". Pages of hosts that headgate does not serve are never requested.

A sitemap is an XML or text file, also compressed with gzip, or an index of sitemaps. A URL must
be on a host that headgate serves; download other sitemaps and specify the file.

Requests have the Accept and Accept-Encoding headers of browsers, and the client address of this
machine. If responses vary by other headers, run warm once for each value with --header. Limits
for clients, such as rate_limit and a gate, apply. warm stops after 10 failures in a row, with
Ctrl-C, and at its limits; running it again continues, because what is stored is not requested
again.

Exit codes: 0 all pages were processed, 1 some failed or warm was stopped, 2 invalid command
line.` + reachHelp,
		Example: `  headgate cache warm --sitemap https://shop.example.com/sitemap.xml
  headgate cache warm --sitemap sitemap.xml.gz --proxy shop --rate 2 --max 500
  headgate cache warm --sitemap https://shop.example.com/sitemap.xml -H 'Accept-Language: de'`,
	}
	r, output := addReach(cmd), addOutput(cmd)
	w := &warming{seen: map[string]bool{}}
	f := cmd.Flags()
	f.StringVar(&w.from, "sitemap", "", "`URL` or file of the sitemap")
	f.StringVar(&w.proxy, "proxy", "", "`NAME` of the proxy whose pages are requested; all proxies by default")
	rate := f.Float64("rate", 5, "maximum `REQUESTS` per second")
	f.IntVar(&w.max, "max", 1000, "maximum `NUMBER` of pages, 1 to 100000")
	size := f.String("max-bytes", "1GiB", "stop after responses of this `SIZE` in total")
	limit := f.Duration("timeout", time.Hour, "stop after this `DURATION`")
	headers := f.StringArrayP("header", "H", nil, "`NAME:VALUE` of a request header; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if w.from == "" {
			return usage("--sitemap is required: a URL or a file")
		}
		if w.max < 1 || w.max > 100_000 || *rate <= 0 || *rate > 1000 || *limit <= 0 {
			return usage("--max must be 1 to 100000, --rate above 0 and at most 1000, --timeout above 0")
		}
		most, err := unit.ParseSize(*size)
		if err != nil || most <= 0 {
			return usage("invalid --max-bytes %q: expected a size like 500MiB", *size)
		}
		w.bytes, w.every = int64(most), time.Duration(float64(time.Second) / *rate)
		if err := w.setHeaders(*headers); err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		ctx, cancel := context.WithTimeout(ctx, *limit)
		defer cancel()
		if isTerminal(cmd.ErrOrStderr()) {
			w.progress = cmd.ErrOrStderr()
		}
		if err := w.run(ctx, r); err != nil {
			return err
		}
		if output.value == "json" {
			err = writeJSON(cmd, &w.report)
		} else {
			err = w.report.print(cmd.OutOrStdout())
		}
		if err == nil && (w.report.Stopped != "" || w.report.Failed > 0) {
			err = &exitError{code: exitInvalid}
		}
		return err
	}
	return cmd
}

// warming requests the pages of sitemaps.
type warming struct {
	from, proxy string
	max         int
	bytes       int64 // of bodies that may still be read
	every       time.Duration
	header      http.Header
	fields      []string // the same as explain gets them
	progress    io.Writer

	to     *remote
	pages  *http.Client
	next   time.Time // of the next request
	shown  time.Time
	seen   map[string]bool // URLs of sitemaps and pages
	failed int             // in a row
	report warmReport
}

// setHeaders adds the headers of the command line to those of all requests.
func (w *warming) setHeaders(named []string) error {
	w.header = http.Header{}
	for _, h := range warmHeaders {
		w.header.Set(h[0], h[1])
	}
	for _, h := range named {
		name, value, ok := strings.Cut(h, ":")
		if !ok || name == "" || strings.TrimSpace(name) != name || strings.EqualFold(name, "Host") {
			return usage("invalid header %q: expected name:value, and not Host", h)
		}
		w.header.Set(name, strings.TrimSpace(value))
	}
	for name := range w.header {
		w.fields = append(w.fields, name+": "+w.header.Get(name))
	}
	return nil
}

// run reads the sitemaps and requests their pages. The error is why nothing was requested;
// what happens later is in the report.
func (w *warming) run(ctx context.Context, r *reach) error {
	to, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer to.close()
	w.to, w.pages = to, newPages(to.options.URL)
	defer w.pages.CloseIdleConnections()
	before, err := to.GetCache(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.readSitemaps(ctx); err != nil {
		return err
	}
	switch ctx.Err() {
	case context.Canceled:
		w.report.Stopped = "interrupted"
	case context.DeadlineExceeded:
		w.report.Stopped = "--timeout is over"
	}
	w.report.Seconds = time.Since(began).Seconds()
	after, err := to.GetCache(context.WithoutCancel(ctx))
	if err == nil {
		w.report.Evicted = max(0, evictions(after)-evictions(before))
	}
	return nil
}

// evictions counts the responses that the caches have removed for others.
func evictions(all *client.CacheState) (n int64) {
	for _, c := range all.Caches {
		n += c.Evicted
	}
	return n
}

// readSitemaps reads the sitemap, then those that it lists, level by level.
func (w *warming) readSitemaps(ctx context.Context) error {
	level := []string{w.from}
	for depth := 0; len(level) > 0; depth++ {
		var below []string
		for _, from := range level {
			if w.report.Sitemaps == maxSitemaps {
				w.report.stop("there are more than %d sitemaps", maxSitemaps)
			}
			if ctx.Err() != nil || w.report.Stopped != "" {
				return nil
			}
			listed, err := w.readSitemap(ctx, from)
			if err != nil && w.report.Sitemaps == 0 {
				return fmt.Errorf("sitemap %s: %w", from, err)
			}
			if err != nil && ctx.Err() == nil {
				w.report.add(warmFailed, "sitemap: "+err.Error(), "", from)
			}
			w.report.Sitemaps++
			below = append(below, listed...)
		}
		if depth == maxSitemapDepth && len(below) > 0 {
			w.report.stop("indexes of sitemaps are nested deeper than %d", maxSitemapDepth)
			return nil
		}
		level = below
	}
	return nil
}

// readSitemap requests the pages of one sitemap, and returns the sitemaps that it lists.
func (w *warming) readSitemap(ctx context.Context, from string) (listed []string, err error) {
	in, base, err := w.openSitemap(ctx, from)
	if err != nil {
		return nil, err
	}
	if base != nil {
		w.seen[base.String()] = true
	}
	var pages []*url.URL
	full := false
	err = sitemap.Read(in, func(e sitemap.Entry) bool {
		page, ok := w.entryURL(e.URL, base)
		switch {
		case !ok || w.seen[page.String()]:
		case e.Index:
			w.seen[page.String()] = true
			if len(listed) < maxSitemaps {
				listed = append(listed, page.String())
			}
		default:
			if full = w.report.Pages+len(pages) >= w.max; full {
				return false
			}
			w.seen[page.String()] = true
			pages = append(pages, page)
		}
		return true
	})
	_ = in.Close() // read as far as needed
	for _, page := range pages {
		if ctx.Err() != nil || w.report.Stopped != "" {
			return nil, nil
		}
		w.report.Pages++
		w.warm(ctx, page)
		w.tick()
	}
	if full {
		w.report.stop("--max %d pages are reached", w.max)
	}
	return listed, err
}

// entryURL reads a URL of a sitemap, which is relative to base if that is known.
func (w *warming) entryURL(text string, base *url.URL) (page *url.URL, ok bool) {
	page, err := url.Parse(text)
	if err == nil && base != nil {
		page = base.ResolveReference(page)
	}
	if err != nil || page.Scheme != "http" && page.Scheme != "https" || page.Host == "" || page.User != nil {
		w.report.Pages++
		w.report.add(warmFailed, "the sitemap has an invalid URL", "", text)
		return nil, false
	}
	page.Fragment = ""
	return page, true
}

// openSitemap opens a file, or a URL as a client of headgate gets it. base is the URL, after
// redirects.
func (w *warming) openSitemap(ctx context.Context, from string) (body io.ReadCloser, base *url.URL, err error) {
	base, err = url.Parse(from)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" {
		f, err := os.Open(from)
		return f, nil, err
	}
	for range maxWarmRedirects + 1 {
		e, err := w.explain(ctx, base)
		if err != nil {
			return nil, nil, err
		}
		if e.Port == "" || e.Proxy == "" {
			return nil, nil, fmt.Errorf("headgate does not serve %s; download the sitemap and specify the file", base.Redacted())
		}
		rs, err := w.get(ctx, base, e, http.Header{"User-Agent": w.header["User-Agent"]})
		if err != nil {
			return nil, nil, err
		}
		if rs.StatusCode == http.StatusOK {
			return rs.Body, base, nil
		}
		_ = rs.Body.Close() // its status is the error
		target, err := rs.Location()
		if err != nil {
			return nil, nil, fmt.Errorf("the response has status %d, not 200", rs.StatusCode)
		}
		base = target
	}
	return nil, nil, fmt.Errorf("more than %d redirects", maxWarmRedirects)
}

// explain returns what headgate makes of the request for a page, without sending it.
func (w *warming) explain(ctx context.Context, page *url.URL) (*client.Explanation, error) {
	return w.to.Explain(ctx, &client.ExplainInput{Method: http.MethodGet, URL: page.String(), Headers: w.fields})
}

// warm requests a page if it is not stored, and reports what became of it.
func (w *warming) warm(ctx context.Context, page *url.URL) {
	e, err := w.explain(ctx, page)
	switch {
	case err != nil:
		w.fail(ctx, err.Error(), page)
	case e.Port == "" || e.Proxy == "":
		w.report.add(warmNotServed, "headgate does not serve this host and path", "", page.String())
	case w.proxy != "" && e.Proxy != w.proxy:
		w.report.add(warmNotServed, "another proxy serves it", "", page.String())
	case e.Cache == nil && e.Answer != nil:
		w.report.add(warmNotStored, fmt.Sprintf("headgate itself responds with %d", e.Answer.Status), "", page.String())
	case e.Cache == nil:
		w.report.add(warmNotStored, "the route has no cache", "add cache: {} to the route or its proxy", page.String())
	case e.Cache.Answered && e.Cache.Status >= 500:
		w.report.add(warmFailed, fmt.Sprintf("a response with status %d is stored", e.Cache.Status), "purge it when the server responds again", page.String())
	case e.Cache.Answered:
		w.report.add(warmAlready, "", "", page.String())
	default:
		w.request(ctx, page, e)
	}
}

// request requests a page and reads the response to its end. After a response that could not
// be stored lately, a cache does not store the first one that could be: then it requests twice.
func (w *warming) request(ctx context.Context, page *url.URL, e *client.Explanation) {
	for attempt := 1; ; attempt++ {
		if !w.wait(ctx) {
			return
		}
		rs, err := w.get(ctx, page, e, w.header)
		if err != nil {
			w.fail(ctx, err.Error(), page)
			return
		}
		n, err := io.Copy(io.Discard, io.LimitReader(rs.Body, w.bytes+1))
		_ = rs.Body.Close() // read as far as allowed
		w.report.Fetched++
		w.report.Bytes += n
		if w.bytes -= n; w.bytes < 0 {
			w.report.stop("--max-bytes of responses are reached")
			return
		}
		switch {
		case err != nil:
			w.fail(ctx, err.Error(), page)
			return
		case rs.StatusCode >= 500 || rs.StatusCode == http.StatusTooManyRequests:
			w.fail(ctx, fmt.Sprintf("status %d", rs.StatusCode), page)
			return
		}
		w.failed = 0
		if w.reportStored(ctx, page, rs, attempt == 2) {
			return
		}
	}
}

// reportStored reports whether a response is stored now, or why not. It returns false if another
// request may change that.
func (w *warming) reportStored(ctx context.Context, page *url.URL, rs *http.Response, last bool) bool {
	if now, err := w.explain(ctx, page); err == nil && now.Cache != nil && now.Cache.Status != 0 {
		w.report.add(warmStored, "", "", page.String())
		return true
	}
	use, detail := cacheStatus(rs.Header)
	why, fix := cache.WhyNot(detail)
	switch {
	case why != "":
		w.report.add(warmNotStored, fmt.Sprintf("%s (%s)", why, detail), fix, page.String())
	case use == "":
		w.report.add(warmNotStored, fmt.Sprintf("the response with status %d did not come through the cache", rs.StatusCode), "a filter of the route responded, such as a gate or a redirect: see headgate explain", page.String())
	case detail != "":
		w.report.add(warmNotStored, detail, "", page.String())
	case last || use != exchange.CacheMiss.String() && !strings.HasPrefix(use, "fwd="):
		w.report.add(warmNotStored, "the response is not in the cache after it was received: it is larger than max_entry or memory_limit, or varies by a header", "see headgate explain --cache", page.String())
	default:
		return false
	}
	return true
}

// cacheStatus returns what the cache of headgate did, like hit or fwd=uri-miss, and the detail
// (RFC 9211). The last member is the one nearest to the client.
func cacheStatus(h http.Header) (use, detail string) {
	for _, member := range strings.Split(strings.Join(h.Values("Cache-Status"), ","), ",") {
		name, parameters, _ := strings.Cut(member, ";")
		if strings.TrimSpace(name) != "headgate" {
			continue
		}
		use, detail = "", ""
		for _, p := range strings.Split(parameters, ";") {
			p = strings.TrimSpace(p)
			if value, ok := strings.CutPrefix(p, "detail="); ok {
				detail = value
			}
			if p == "hit" || strings.HasPrefix(p, "fwd=") {
				use = p
			}
		}
	}
	return use, detail
}

// fail reports a request without a usable response, and stops after several in a row.
func (w *warming) fail(ctx context.Context, why string, page *url.URL) {
	if ctx.Err() != nil {
		return // the report says that it was stopped
	}
	w.report.add(warmFailed, why, "", page.String())
	if w.failed++; w.failed == maxWarmFailures {
		w.report.stop("%d requests in a row failed", maxWarmFailures)
	}
}

// wait waits until the next request may be sent.
func (w *warming) wait(ctx context.Context) bool {
	pause := time.NewTimer(time.Until(w.next))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-pause.C:
		w.next = time.Now().Add(w.every)
		return true
	}
}

// tick shows the progress now and then.
func (w *warming) tick() {
	if w.progress != nil && time.Since(w.shown) >= progressEvery {
		w.shown = time.Now()
		fmt.Fprintf(w.progress, "%d pages, %d stored\n", w.report.Pages, w.report.Stored)
	}
}

// listenerKey carries the address that a connection is made to, in place of the host of the
// URL.
type listenerKey struct{}

// newPages returns the client of the ports of the headgate whose admin listener has a URL.
func newPages(admin string) *http.Client {
	elsewhere := ""
	if u, err := url.Parse(admin); err == nil && u.Hostname() != "headgate" {
		elsewhere = u.Hostname()
	}
	dialer := &net.Dialer{Timeout: headTimeout}
	return &http.Client{
		Timeout:       warmTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				at, err := netip.ParseAddrPort(ctx.Value(listenerKey{}).(string))
				if err != nil {
					return nil, err
				}
				if at.Addr().IsUnspecified() && elsewhere != "" {
					return dialer.DialContext(ctx, network, net.JoinHostPort(elsewhere, fmt.Sprint(at.Port())))
				}
				return dialer.DialContext(ctx, network, reachable(at))
			},
			// It is a port of the headgate that was verified already, and what it sends is dropped.
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
			TLSHandshakeTimeout: headTimeout, ResponseHeaderTimeout: headTimeout,
			DisableCompression: true, MaxIdleConns: 16, IdleConnTimeout: 30 * time.Second,
		},
	}
}

// get requests a page from the port that an explanation names. Close the body.
func (w *warming) get(ctx context.Context, page *url.URL, e *client.Explanation, header http.Header) (*http.Response, error) {
	ctx = context.WithValue(ctx, listenerKey{}, e.Address)
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
	if err != nil {
		return nil, err
	}
	rq.Header = header
	return w.pages.Do(rq)
}
