package cache

import (
	"bytes"
	"slices"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// invalidate removes what an unsafe request has changed: the entries for its own
// URL, and for those in the response, on the same host (RFC 9111, section 4.4).
// A failed request has changed nothing.
func (c *Cache) invalidate(ex *exchange.Exchange) {
	rq, rs := &ex.Request, &ex.Response
	switch rq.Method {
	case "GET", "HEAD", "OPTIONS", "TRACE":
		return
	}
	if rs.Ours || rs.Status < 200 || rs.Status > 399 {
		return
	}
	if h := hits.Get(ex); h != nil && h.post != nil && h.post.entry != nil {
		// The entries to remove are older than its own response.
		stored := h.post
		if swept := c.store.sweptSince(stored.entry.hash, stored.begun); !swept {
			defer func() { stored.begun = c.store.sweeps.Load() }()
		}
	}
	c.forget(rq.Host, rq.Path, rq.Query)
	for _, id := range [...]header.ID{header.Location, header.ContentLocation} {
		if path, query, ok := sameHost(rs.Header.Get(id), rq); ok {
			c.forget(rq.Host, path, query)
		}
	}
	c.invalidateGroups(rq, rs)
}

// maxGroups is how many groups one response can invalidate. RFC 9875, section 2.2 requires 32.
const maxGroups = 32

// invalidateGroups removes the responses of the request's origin that are in one of the
// groups that Cache-Group-Invalidation names (RFC 9875, section 3). All are removed in one
// walk through the index.
func (c *Cache) invalidateGroups(rq *exchange.Request, rs *exchange.Response) {
	var named []string
	for _, f := range rs.Header.All() {
		if f.ID != header.Other || !f.Is("Cache-Group-Invalidation") {
			continue
		}
		for g := range groups(f.Value) {
			if len(named) < maxGroups {
				named = append(named, g)
			}
		}
	}
	if len(named) == 0 {
		return
	}
	origin := append(append([]byte(nil), rq.Scheme...), 0)
	origin = append(appendHost(origin, rq.Host, rq.Scheme), 0)
	c.store.drop(func(e *entry) bool { return bytes.HasPrefix(e.key(), origin) && e.inGroup(named) }, takeOut)
}

// inGroup reports whether the entry is in one of the groups, whose names are case-sensitive.
func (e *entry) inGroup(named []string) bool {
	if !e.tagged {
		return false
	}
	var list header.List
	e.fields(&list, func(id header.ID) bool { return id == header.CacheGroups })
	for _, f := range list.All() {
		for g := range groups(f.Value) {
			if slices.Contains(named, g) {
				return true
			}
		}
	}
	return false
}

// forget removes the entries for a URL, in both schemes.
func (c *Cache) forget(host, path, query string) {
	for _, scheme := range [...]string{"http", "https"} {
		b := append(make([]byte, 0, 256), scheme...)
		b = appendHost(append(b, 0), host, scheme)
		b = append(append(b, 0), path...)
		b = c.ignored.appendQuery(b, query)
		c.store.forget(b, takeOut)
	}
}

// forget removes all entries whose key starts with url, makes them stale or counts
// them, and returns how many there were. Responses in transit at that time are not
// stored.
func (s *store) forget(url []byte, how sweep) (n int) {
	hash := s.hash(url)
	sh := s.shard(hash)
	var out []*entry
	sh.mu.Lock()
	if how != onlyCount {
		if sh.mu.swept == nil {
			sh.mu.swept = new([marks]uint64)
		}
		sh.mu.swept[hash%marks] = s.sweeps.Add(1)
	}
	for e := sh.mu.entries[hash]; e != nil; {
		next := e.next
		if key := e.key(); len(key) > len(url) && string(key[:len(url)]) == string(url) && key[len(url)] == 0 {
			n++
			switch how {
			case makeStale:
				e.purged.Store(true)
			case takeOut:
				sh.unlinkLocked(e)
				out = append(out, e)
			}
		}
		e = next
	}
	sh.mu.Unlock()
	for _, e := range out {
		s.unqueue(e)
	}
	return n
}

// sameHost returns path and query of a reference in a response, if it is to the
// host of the request.
func sameHost(ref string, rq *exchange.Request) (path, query string, ok bool) {
	if ref == "" {
		return "", "", false
	}
	ref, _, _ = strings.Cut(ref, "#")
	switch {
	case strings.HasPrefix(ref, "//"):
		ref = rq.Scheme + ":" + ref
		fallthrough
	case strings.Contains(ref, "://"):
		scheme, rest, _ := strings.Cut(ref, "://")
		scheme = strings.ToLower(scheme)
		if scheme != "http" && scheme != "https" {
			return "", "", false
		}
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		host := string(appendHost(nil, rest[:end], scheme))
		if host != string(appendHost(nil, rq.Host, rq.Scheme)) {
			return "", "", false
		}
		if ref = rest[end:]; !strings.HasPrefix(ref, "/") {
			ref = "/" + ref
		}
	case !strings.HasPrefix(ref, "/"):
		// Relative to the folder of the request.
		ref = rq.Path[:strings.LastIndexByte(rq.Path, '/')+1] + ref
	}
	if i := strings.IndexByte(ref, '?'); i >= 0 {
		path, query = ref[:i], ref[i:]
	} else {
		path = ref
	}
	return normalPath(path), query, true
}
