package icon

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"

	"headgate/internal/exchange"
	"headgate/internal/gate/page"
	"headgate/internal/proto/header"
)

// The bounds of one search.
const (
	// requestTime is how long a server may take for the head of a response, and between the
	// parts of its body; a body has twice that time in all.
	requestTime = 3 * time.Second
	// maxPage is how much of a page is read, maxIcon how large an icon may be, in bytes.
	maxPage = 128 << 10
	maxIcon = 64 << 10
	// maxRedirects is how many redirects are followed to a page or an icon, maxTried how many
	// icons are requested.
	maxRedirects = 3
	maxTried     = 3
)

// agent is the User-Agent of the requests.
const agent = "headgate-icon"

// search returns the icon of an application, nil for none.
func search(ctx context.Context, host string, source exchange.Source) *Icon {
	s := &searching{ctx: ctx, host: host, source: source}
	first := &url.URL{Scheme: "https", Host: host, Path: "/"}
	var wanted []candidate
	if at, text := s.get(first, "text/html,*/*;q=0.1", maxPage); at != nil {
		wanted = candidates(text, at)
	}
	wanted = append(wanted, candidate{url: first.JoinPath("favicon.ico")})
	for i, c := range wanted {
		if i == maxTried {
			break
		}
		if at, data := s.get(c.url, "image/*,*/*;q=0.1", maxIcon+1); at != nil {
			if found := iconOf(data); found != nil {
				return found
			}
		}
	}
	return nil
}

// iconOf returns data as an icon, nil if browsers show it as none.
func iconOf(data []byte) *Icon {
	if len(data) > maxIcon {
		return nil
	}
	if kind := http.DetectContentType(data); kind == "image/x-icon" {
		return &Icon{data, kind}
	}
	if kind, err := page.ImageType(data); err == nil {
		return &Icon{data, kind}
	}
	return nil
}

// searching is one search.
type searching struct {
	ctx    context.Context
	host   string
	source exchange.Source
	sub    exchange.Subrequest
}

// get returns the body of a response with status 200, cut to limit bytes, and its URL after
// redirects on the host; nil for none.
func (s *searching) get(at *url.URL, accept string, limit int) (*url.URL, []byte) {
	for range maxRedirects + 1 {
		status, location, body := s.request(at, accept, limit)
		switch status {
		case 200:
			return at, body
		case 301, 302, 303, 307, 308:
			if at = own(s.host, at, location); at != nil {
				continue
			}
		}
		break
	}
	return nil, nil
}

// request sends one request to the servers of the application.
func (s *searching) request(at *url.URL, accept string, limit int) (status int, location string, body []byte) {
	if s.ctx.Err() != nil {
		return 0, "", nil
	}
	query := ""
	if at.RawQuery != "" {
		query = "?" + at.RawQuery
	}
	e := &s.sub
	e.Start("GET", cmp.Or(at.EscapedPath(), "/"), query, requestTime)
	e.WhileWanted(func() bool { return s.ctx.Err() != nil })
	defer e.Close()
	rq := &e.Request
	rq.Host = s.host
	rq.Header.Add(header.UserAgent, agent)
	rq.Header.Add(header.Accept, accept)
	rq.Header.AddField("X-Forwarded-Proto", "https")
	rq.Header.AddField("X-Forwarded-Host", s.host)
	if e.Send(s.source) != nil {
		return 0, "", nil
	}
	rs := &e.Response
	if rs.Status != 200 {
		return rs.Status, strings.Clone(rs.Header.Get(header.Location)), nil
	}
	if rs.Header.Get(header.ContentEncoding) != "" {
		return 0, "", nil // not asked for
	}
	body, err := e.AppendBody(nil, limit)
	if err != nil && err != exchange.ErrTooLong {
		return 0, "", nil
	}
	return 200, "", body
}

// own returns the URL that a reference leads to if it is on the host of the application, nil
// otherwise.
func own(host string, from *url.URL, reference string) *url.URL {
	to, err := from.Parse(strings.TrimSpace(reference))
	if err != nil || reference == "" || to.Scheme != "https" && to.Scheme != "http" || to.User != nil || !strings.EqualFold(to.Hostname(), host) {
		return nil
	}
	return to
}

// candidate is an icon that a page names.
type candidate struct {
	url  *url.URL
	rank int
}

// candidates returns the icons that the head of a page names, the best first.
func candidates(text []byte, at *url.URL) (out []candidate) {
	z := html.NewTokenizer(bytes.NewReader(text))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		t := z.Token()
		if t.Data == "body" {
			break
		}
		if c, ok := linked(t.Attr, at); ok && t.Data == "link" {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(b.rank, a.rank) })
	return out
}

// linked returns the icon of a link element.
func linked(attributes []html.Attribute, at *url.URL) (c candidate, ok bool) {
	var rel, href, sizes, kind string
	for _, a := range attributes {
		switch a.Key {
		case "rel":
			rel = strings.ToLower(a.Val)
		case "href":
			href = a.Val
		case "sizes":
			sizes = strings.ToLower(a.Val)
		case "type":
			kind = strings.ToLower(a.Val)
		}
	}
	words := strings.Fields(rel)
	touch := slices.Contains(words, "apple-touch-icon")
	if !touch && !slices.Contains(words, "icon") {
		return c, false
	}
	if c.url = own(at.Hostname(), at, href); c.url == nil {
		return c, false
	}
	c.rank = rankOf(sizes, touch, kind == "image/svg+xml" || strings.HasSuffix(c.url.Path, ".svg"))
	return c, true
}

// The size of an icon on the page, in CSS pixels of a display with two for each, and that of
// icons that do not say theirs.
const (
	shownSize  = 96
	usualSize  = 32
	touchSize  = 180
	maxWidth   = 2048
	scalesRank = 1000
)

// rankOf ranks an icon: one that scales is the best, then the smallest of those that are large
// enough, then the largest of the others.
func rankOf(sizes string, touch, scales bool) int {
	if scales || sizes == "any" {
		return scalesRank
	}
	size := 0
	for one := range strings.FieldsSeq(sizes) {
		width, _, _ := strings.Cut(one, "x")
		if n, err := strconv.Atoi(width); err == nil {
			size = max(size, min(n, maxWidth))
		}
	}
	switch {
	case size > 0:
	case touch:
		size = touchSize
	default:
		size = usualSize
	}
	if size >= shownSize {
		return scalesRank - 1 - size/4
	}
	return size
}
