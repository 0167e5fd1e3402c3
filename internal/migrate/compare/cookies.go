package compare

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxCookies bounds the fields Set-Cookie of one answer that are compared.
const maxCookies = 200

// attributes are the attributes of a cookie by their usual names, without its value.
// Unknown attributes are included.
type attributes map[string]string

// cookiesOf returns the attributes of the cookies of a response by the cookies'
// names. It also reads fields that package net/http rejects: browsers accept most.
func cookiesOf(a *answer) map[string][]attributes {
	all := map[string][]attributes{}
	fields := a.header.Values("Set-Cookie")
	for _, field := range fields[:min(len(fields), maxCookies)] {
		pair, rest, _ := strings.Cut(field, ";")
		name, _, ok := strings.Cut(pair, "=")
		if name = shortenTo(strings.TrimSpace(name), maxName); !ok {
			name = "" // browsers interpret it as the value of a cookie without a name
		}
		all[name] = append(all[name], attributesOf(rest))
	}
	return all
}

// attributesOf reads what follows name and value. Of two attributes with one name the
// last counts (RFC 6265, section 5.3).
func attributesOf(text string) attributes {
	out := attributes{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		name, value = http.CanonicalHeaderKey(strings.ToLower(strings.TrimSpace(name))), strings.TrimSpace(value)
		switch name {
		case "":
			continue
		case "Domain":
			value = strings.ToLower(strings.TrimPrefix(value, "."))
		case "Max-Age":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				value = strconv.FormatInt(max(n, 0), 10)
			}
		case "Samesite":
			name, value = "SameSite", http.CanonicalHeaderKey(strings.ToLower(value))
		case "Httponly":
			name, value = "HttpOnly", ""
		case "Secure":
			value = ""
		case "Expires": // it moves with the clock
			if t, err := http.ParseTime(value); err == nil && t.Before(time.Now()) {
				value = "in the past"
			} else if err == nil {
				value = ""
			}
		}
		out[shortenTo(name, maxName)] = value
	}
	if _, ok := out["Max-Age"]; ok {
		delete(out, "Expires") // Max-Age wins
	}
	return out
}

// String writes the attributes in the order in which people look for them.
func (a attributes) String() string {
	var out []string
	for _, name := range a.names() {
		switch value := a[name]; {
		case value == "":
			out = append(out, name)
		case name == "Expires":
			out = append(out, name+" "+value)
		default:
			out = append(out, name+"="+value)
		}
	}
	if len(out) == 0 {
		return "no attributes"
	}
	return strings.Join(out, "; ")
}

var usual = []string{"Path", "Domain", "Max-Age", "Expires", "Secure", "HttpOnly", "Partitioned", "SameSite"}

func (a attributes) names() []string {
	names := slices.Sorted(maps.Keys(a))
	slices.SortStableFunc(names, func(x, y string) int { return rankOf(x) - rankOf(y) })
	return names
}

func rankOf(name string) int {
	if i := slices.Index(usual, name); i >= 0 {
		return i
	}
	return len(usual)
}

// without leaves out the attributes that are noise.
func (a attributes) without(noise []string) attributes {
	a = maps.Clone(a)
	maps.DeleteFunc(a, func(name, _ string) bool { return slices.Contains(noise, name) })
	return a
}

// differences describes, attribute by attribute, how b differs from a.
func (a attributes) differences(b attributes) string {
	var out []string
	for _, name := range a.names() {
		switch value, ok := b[name]; {
		case !ok:
			out = append(out, name+" is missing")
		case value != a[name]:
			out = append(out, name+" was "+orNothing(a[name])+" and is "+orNothing(value))
		}
	}
	for _, name := range b.names() {
		if _, ok := a[name]; !ok {
			out = append(out, attributes{name: b[name]}.String()+" is new")
		}
	}
	return strings.Join(out, "; ")
}

func orNothing(value string) string {
	if value == "" {
		return "without a value"
	}
	return shorten(value)
}

// cookies compares Set-Cookie by name: attributes, not values, which are sessions.
func (c *comparison) cookies() {
	old, ours := cookiesOf(c.old), cookiesOf(c.new)
	again := old
	if c.again.err == nil {
		again = cookiesOf(c.again)
	}
	all := slices.Concat(slices.Collect(maps.Keys(old)), slices.Collect(maps.Keys(ours)))
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		a, b := unlike(old[name], ours[name])
		noise := noisy(old[name], again[name])
		for i := range max(len(a), len(b)) {
			switch {
			case i >= len(a):
				weight := Differs
				if len(again[name]) > 0 && len(old[name]) == 0 {
					weight = Note
				}
				c.add(KindCookie, weight, name, "", b[i].String(), "cookie "+name+" is new")
			case i >= len(b):
				if len(again[name]) == 0 {
					continue // the old side sets it now and then only
				}
				c.add(KindCookie, Breaks, name, a[i].String(), "", "cookie "+name+" is missing")
			default:
				if text := a[i].without(noise).differences(b[i].without(noise)); text != "" {
					c.add(KindCookie, Breaks, name, a[i].String(), b[i].String(), "cookie "+name+": "+shorten(text))
				}
			}
		}
	}
}

// unlike leaves out the cookies that both sides have with the same attributes. A name may
// be there several times, for paths or domains.
func unlike(old, ours []attributes) (a, b []attributes) {
	b = slices.Clone(ours)
	for _, one := range old {
		if i := slices.IndexFunc(b, func(o attributes) bool { return maps.Equal(o, one) }); i >= 0 {
			b = slices.Delete(b, i, i+1)
		} else {
			a = append(a, one)
		}
	}
	return a, b
}

// noisy returns the attributes in which the old side's own two answers differ.
func noisy(old, again []attributes) (names []string) {
	a, b := unlike(old, again)
	for i := range min(len(a), len(b)) {
		for _, name := range slices.Concat(a[i].names(), b[i].names()) {
			x, inA := a[i][name]
			if y, inB := b[i][name]; inA != inB || x != y {
				names = append(names, name)
			}
		}
	}
	return names
}
