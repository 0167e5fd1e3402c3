package hello

// reader reads fields from the front of a message. Once one is missing, ok is
// false and all further reads return nothing.
type reader struct {
	b  []byte
	ok bool
}

// next returns the next n bytes.
func (r *reader) next(n int) []byte {
	if !r.ok || len(r.b) < n {
		r.ok = false
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) skip(n int) { r.next(n) }

// number reads an unsigned number of so many bytes.
func (r *reader) number(size int) int {
	n := 0
	for _, c := range r.next(size) {
		n = n<<8 | int(c)
	}
	return n
}

// sized reads a field with its length before it, which is a number of so many bytes and
// within bounds.
func (r *reader) sized(size, least, most int) []byte {
	n := r.number(size)
	if n < least || n > most {
		r.ok = false
	}
	return r.next(n)
}

// hello goes over all extensions and returns the name and the protocols among them.
func (r *reader) hello() (h Hello, err error) {
	var named, offered bool
	for len(r.b) > 0 && r.ok {
		kind := r.number(2)
		data := r.sized(2, 0, 1<<16-1)
		valid := true
		switch {
		case kind == extensionName && !named:
			named = true
			h.Name, valid = hostName(data)
		case kind == extensionALPN && !offered:
			offered = true
			h.Protocols, valid = protocols(data)
		case kind == extensionName, kind == extensionALPN: // twice
			valid = false
		}
		if !valid {
			return Hello{}, ErrInvalid
		}
	}
	if !r.ok {
		return Hello{}, ErrInvalid
	}
	return h, nil
}

// protocols reads the list of application protocols (RFC 7301, section 3.1).
func protocols(data []byte) (all []string, ok bool) {
	outer := reader{data, true}
	list := reader{outer.sized(2, 2, 1<<16-1), outer.ok}
	if len(outer.b) > 0 {
		return nil, false
	}
	for len(list.b) > 0 && list.ok {
		all = append(all, string(list.sized(1, 1, 255)))
	}
	return all, list.ok
}

// hostName reads the list of names, of which one may be a host name (RFC 6066,
// section 3).
func hostName(data []byte) (string, bool) {
	outer := reader{data, true}
	list := reader{outer.sized(2, 1, 1<<16-1), outer.ok}
	if len(outer.b) > 0 {
		return "", false
	}
	name := ""
	for len(list.b) > 0 && list.ok {
		kind := list.number(1)
		value := list.sized(2, 1, 255)
		if !list.ok || kind != nameTypeHostName || name != "" {
			return "", false
		}
		var ok bool
		if name, ok = lower(value); !ok {
			return "", false
		}
	}
	return name, list.ok
}

// lower returns a host name in lower case. It has no dot at its end, and nothing
// in it but what host names have.
func lower(b []byte) (string, bool) {
	out := make([]byte, len(b))
	for i, c := range b {
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == ':':
		default:
			return "", false
		}
		out[i] = c
	}
	return string(out), b[len(b)-1] != '.'
}
