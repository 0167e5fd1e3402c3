package cache

import (
	"headgate/internal/proto/header"
)

// has is a set of cache directives.
type has uint32

// The directives that are known, of requests and of responses (RFC 9111, section
// 5.2; RFC 5861; RFC 8246 needs nothing of a shared cache).
const (
	noStore has = 1 << iota
	noCache
	private
	public
	mustRevalidate
	proxyRevalidate
	mustUnderstand
	onlyIfCached
	maxAge
	sMaxage
	minFresh
	maxStale
	anyStale // max-stale without a value
	whileRevalidate
	ifError
	// expired is no directive: the response declares a lifetime of zero.
	expired
)

// longest is the longest time that is counted, in seconds: larger values mean
// the same (RFC 9111, section 1.2.2).
const longest = 1<<31 - 1

// maxLists is how many lists of fields are kept of no-cache and private.
const maxLists = 4

// directives is what Cache-Control fields say. The zero value says nothing.
type directives struct {
	has has
	// seconds; a value that is no number of them is 0, which is stale
	maxAge, sMaxage, minFresh, maxStale, whileRevalidate, ifError int64
	// lists are what no-cache="..." and private="..." name.
	lists [maxLists]string
	named int
}

// parse reads all fields of a list that have this name.
func (d *directives) parse(list *header.List, id header.ID) {
	if !list.Has(id) {
		return
	}
	fields := list.All()
	for i := range fields {
		if fields[i].ID == id {
			d.value(fields[i].Value)
		}
	}
}

// value reads one field. What is not written as the RFC says is passed over up to
// the next comma; but a word that forbids is heeded whatever follows it.
func (d *directives) value(s string) {
	for s != "" {
		name := token(s)
		if name == "" {
			s = s[1:]
			continue
		}
		s = s[len(name):]
		arg, given, quoted := "", false, false
		if s != "" && s[0] == '=' {
			given = true
			arg, s, quoted = argument(s[1:])
		}
		rest, clean := skip(s)
		s = rest
		d.add(name, arg, given, quoted, clean)
	}
}

// add notes one directive. clean says that nothing unexpected follows it.
func (d *directives) add(name, arg string, given, quoted, clean bool) {
	switch len(name) {
	case 6:
		if header.EqualFold(name, "public") && clean {
			d.has |= public
		}
	case 7:
		switch {
		case header.EqualFold(name, "private"):
			d.fields(private, arg, quoted)
		case header.EqualFold(name, "max-age"):
			d.time(maxAge, &d.maxAge, arg, given && clean)
		}
	case 8:
		switch {
		case header.EqualFold(name, "no-store"):
			d.has |= noStore
		case header.EqualFold(name, "no-cache"):
			d.fields(noCache, arg, quoted)
		case header.EqualFold(name, "s-maxage"):
			d.time(sMaxage, &d.sMaxage, arg, given && clean)
		}
	case 9:
		switch {
		case header.EqualFold(name, "min-fresh"):
			d.time(minFresh, &d.minFresh, arg, given && clean)
		case header.EqualFold(name, "max-stale") && !given:
			d.has |= maxStale | anyStale
		case header.EqualFold(name, "max-stale"):
			d.time(maxStale, &d.maxStale, arg, clean)
		}
	default:
		d.addLong(name, arg, given && clean)
	}
}

func (d *directives) addLong(name, arg string, given bool) {
	switch {
	case header.EqualFold(name, "must-revalidate"):
		d.has |= mustRevalidate
	case header.EqualFold(name, "proxy-revalidate"):
		d.has |= proxyRevalidate
	case header.EqualFold(name, "must-understand"):
		d.has |= mustUnderstand
	case header.EqualFold(name, "only-if-cached"):
		d.has |= onlyIfCached
	case header.EqualFold(name, "stale-while-revalidate"):
		d.time(whileRevalidate, &d.whileRevalidate, arg, given)
	case header.EqualFold(name, "stale-if-error"):
		d.time(ifError, &d.ifError, arg, given)
	}
}

// fields notes a directive that may name fields. Only a plain list of names in
// quotes bounds it to them; everything else is the whole response.
func (d *directives) fields(what has, arg string, quoted bool) {
	if !quoted || arg == "" || d.named == maxLists {
		d.has |= what
		return
	}
	for i := 0; i < len(arg); i++ {
		if c := arg[i]; !tokenByte[c] && c != ',' && c != ' ' && c != '\t' {
			d.has |= what
			return
		}
	}
	d.lists[d.named] = arg
	d.named++
}

// time notes a directive with a number of seconds. The first of several counts;
// one that is no number makes the response stale (RFC 9111, section 4.2.1).
func (d *directives) time(what has, at *int64, arg string, ok bool) {
	if d.has&what != 0 {
		return
	}
	d.has |= what
	*at = 0
	if n, number := seconds(arg); number && ok {
		*at = n
	}
}

// names reports whether a field is on one of the lists.
func (d *directives) names(f *header.Field) bool {
	for i := range d.named {
		for s := d.lists[i]; s != ""; {
			name := token(s)
			if name == "" {
				s = s[1:]
				continue
			}
			if f.Is(name) {
				return true
			}
			s = s[len(name):]
		}
	}
	return false
}

// seconds reads delta-seconds. A number too large counts as the largest.
func seconds(s string) (n int64, ok bool) {
	if s == "" {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int64(c-'0'), longest)
	}
	return n, true
}

// token returns the token at the beginning of s.
func token(s string) string {
	i := 0
	for i < len(s) && tokenByte[s[i]] {
		i++
	}
	return s[:i]
}

// argument returns the token or the text in quotes at the beginning of s, and
// what follows. A text with a backslash comes with it; one without an end is "".
func argument(s string) (arg, rest string, quoted bool) {
	if s == "" || s[0] != '"' {
		arg = token(s)
		return arg, s[len(arg):], false
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[1:i], s[i+1:], true
		}
	}
	return "", "", true
}

// skip goes on behind the next comma that is not in quotes. clean reports that
// there was only white space before it.
func skip(s string) (rest string, clean bool) {
	clean = true
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted, clean = !quoted, false
		case c == ',' && !quoted:
			return s[i+1:], clean
		case c != ' ' && c != '\t':
			clean = false
		}
	}
	return "", clean
}

// tokenByte is what a token is made of (RFC 9110, section 5.6.2).
var tokenByte = func() (t [256]bool) {
	for _, c := range "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		t[c] = true
	}
	return t
}()
