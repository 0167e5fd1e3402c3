package http1

import "headgate/internal/proto/header"

// maxOptions is the largest number of connection options that a message may
// hold, and so of fields that it can nominate.
const maxOptions = 32

// options is the content of the Connection field (RFC 9110, section 7.6.1).
type options struct {
	close, keepAlive, upgrade bool
	vital                     bool // names Host or Content-Length
	count                     int
}

// connection reads the connection options of a message.
func (f *facts) connection(list *header.List) (o options) {
	switch f.count[slotConnection] {
	case 0:
	case 1:
		o.add(f.value[slotConnection])
	default:
		all := list.All()
		for i := range all {
			if all[i].ID == header.Connection {
				o.add(all[i].Value)
			}
		}
	}
	return o
}

func (o *options) add(value string) {
	for rest, last := value, false; !last; {
		var name string
		name, rest, last = element(rest)
		o.count++
		switch len(name) {
		case len("host"):
			o.vital = o.vital || header.EqualFold(name, "host")
		case len("close"):
			o.close = o.close || header.EqualFold(name, "close")
		case len("upgrade"):
			o.upgrade = o.upgrade || header.EqualFold(name, "upgrade")
		case len("keep-alive"):
			o.keepAlive = o.keepAlive || header.EqualFold(name, "keep-alive")
		case len("content-length"):
			o.vital = o.vital || header.EqualFold(name, "content-length")
		}
	}
}

// persists reports whether the connection may carry another message after this
// one (RFC 9112, section 9.3).
func (o *options) persists(minor uint8) bool {
	return !o.close && (minor > 0 || o.keepAlive)
}

// StripHopByHop removes, in one pass, what is meant for one connection only
// (RFC 9110, section 7.6.1): the hop-by-hop fields, and the fields that a
// Connection field names.
//
// A Connection field cannot remove a well-known end-to-end field. The section
// forbids senders to list one, and a client that could remove Authorization or
// a trusted proxy's X-Forwarded-For would change the decisions of this proxy
// and the server, so such names are ignored. (Requests that list Host or
// Content-Length are rejected before.)
//
// TE and Upgrade are removed as well: a proxy that forwards an upgrade, or
// accepts trailers, sends its own. So is Transfer-Encoding, as the proxy
// determines the framing of what it sends.
func StripHopByHop(list *header.List) {
	if !list.Has(header.Connection) {
		list.DeleteFunc(hopByHop)
		return
	}
	all := list.All()
	for i := range all {
		if v := all[i].Value; all[i].ID == header.Connection && v != "keep-alive" && v != "close" {
			stripNominated(list)
			return
		}
	}
	list.DeleteFunc(hopByHop)
}

func hopByHop(f *header.Field) bool { return f.ID.HopByHop() }

// stripNominated is StripHopByHop for a list whose Connection fields may name
// others.
func stripNominated(list *header.List) {
	var named [maxOptions]string
	n := nominations(list, &named)
	list.DeleteFunc(func(f *header.Field) bool {
		if f.ID != header.Other {
			return f.ID.HopByHop()
		}
		for _, name := range named[:n] {
			if header.EqualFold(name, f.Name) {
				return true
			}
		}
		return false
	})
}

// nominations collects the names in Connection fields that may be removed.
func nominations(list *header.List, named *[maxOptions]string) (n int) {
	all := list.All()
	for i := range all {
		if all[i].ID != header.Connection {
			continue
		}
		for rest, last := all[i].Value, false; !last && n < maxOptions; {
			var name string
			name, rest, last = element(rest)
			if name != "" && header.Lookup(name) == header.Other && !header.EqualFold(name, "close") {
				named[n] = name
				n++
			}
		}
	}
	return n
}
